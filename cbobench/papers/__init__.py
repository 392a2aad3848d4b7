"""Claims of the papers, and maps of them.

What recipes in `analysis/` use: evidence and verdicts on claims, and maps of claims over what the
papers leave open.
"""
