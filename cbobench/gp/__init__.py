"""Gaussian processes for many seeds at once: kernels, action sets, posteriors, widths,
explorations, maximisation.

It knows nothing of bandits, problems or files. The order of operations must stay: products are
stacked so that a seed's bits do not depend on its block, and every result is compared to the last
bit.
"""
