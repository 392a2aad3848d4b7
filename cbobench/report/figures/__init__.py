"""Figures: curves, planes and profiles, the page that they stand on, and their captions."""
