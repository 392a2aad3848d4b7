"""`cbobench report`: `content` makes the sections of a page, `figures` its figures, and `command`
writes it.
"""
