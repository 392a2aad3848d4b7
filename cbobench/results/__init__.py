"""A run on disk.

A run on disk: its files and their schema, `run.json`, what is done, and which results are stale.

May be touched freely: status and provenance. With care: a change of columns, footers or `run.json` is a new
`SCHEMA_VERSION`, and files are published whole or not at all. `cbobench.report` reads this room, never Ray.
"""
