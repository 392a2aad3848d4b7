"""`cbobench report`: `content` is what a page holds, `command` writes it.

A page is one HTML file that shows runs and opens offline: the numbers of `report` as data, in a
template with its library.
"""
