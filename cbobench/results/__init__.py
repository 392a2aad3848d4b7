"""A run on disk: its files and their schema, `run.json`, the state of its cells, and which results
are stale.

A change of columns, footers or `run.json` needs a new `SCHEMA_VERSION`. Files are published whole
or not at all.
"""
