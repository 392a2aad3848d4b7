"""One HTML file of a run.

One HTML file that shows runs and opens offline: the numbers of `report` as data, in a template with its library.
"""
