"""Tables and figures.

From published results to frames, tables and figures; recipes in `analysis/recipes/` sit on top.

May be touched freely: none of it enters a result. With care: names of columns, which users'
notebooks read. It reads `cbobench.results` and the table of metrics, and never plays or starts
anything.
"""
