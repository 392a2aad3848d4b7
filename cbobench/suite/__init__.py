"""Reads a suite file and lists its cells: YAML, variants, checks, and the identity of pairs, cells and grids.

May be touched freely: messages, checks, keys of a suite. With care: `Pair.spec`, whose hash is a cell's id; another
spelling orphans every result on disk. Nothing is played or written here.
"""
