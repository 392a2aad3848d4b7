"""From a suite file to its cells.

From a suite file to the cells it asks for: YAML, variants, checks, and the identity of pairs, cells and grids.

May be touched freely: messages, checks, keys of a suite. With care: `Pair.spec`, whose hash is a cell's id; another
spelling orphans every result on disk. Nothing is played or written here.
"""
