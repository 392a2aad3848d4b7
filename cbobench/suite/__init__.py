"""From a suite file to its cells: YAML, variants, checks, and the identity of pairs, cells and
grids.

`Pair.spec` must stay as it is: its hash is a cell's id, so another spelling orphans every result on
disk. Nothing is played or written here.
"""
