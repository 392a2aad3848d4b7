"""Claims of the papers: evidence and verdicts, which files in `analysis/claims/` ask for."""
