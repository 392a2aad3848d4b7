"""Claims, maps and audits of the papers.

What recipes in `analysis/` use: evidence and verdicts on claims, maps of claims over what papers
leave open, and the audit of a play (events, assumptions and bounds of the theorems). The core knows
one name of it, `cbobench.papers.audit.Audit`, which `cbobench.play.task` asks for where a suite
says `audit: true`.
"""
