"""Folders of a clone that the programs of `analysis` and `website` read and write."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PUBLISHED = ROOT / "published"  # bundles, and files of measured numbers
PROSE = ROOT / "website" / "prose"  # what pages say beside tables
