"""Gaussian processes of many seeds.

Gaussian processes for many seeds at once: kernels, action sets, posteriors, widths, explorations, maximisation.

Knows nothing of bandits, problems or files. Readable names may change freely; the order of operations may not, because
products are stacked so that a seed's bits do not depend on its block, and every result is compared to the last bit.
"""
