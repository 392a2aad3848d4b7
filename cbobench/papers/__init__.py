"""Claims of the papers: what recipes in `analysis/` use for evidence and verdicts on them."""
