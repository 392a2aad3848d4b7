"""Intervals, tests, ranks.

Arrays in, numbers out: intervals, paired comparisons, ranks.

May be touched freely: nothing here plays or enters a result. With care: what an interval or a test
is decides what every table says, so methods are chosen by their measured coverage
(`benchmarks/quality/coverage.py`), and no number of one algorithm may depend on which others are in
the call. It imports `errors` and `rng` only, and knows no file and no run.
"""
