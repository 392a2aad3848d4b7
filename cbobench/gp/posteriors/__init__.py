"""Gaussian-process posteriors: what may be asked of one (`contract`), its representations, delays, and the choice.

Algorithms are written against `contract.Posterior` alone and get one from `choice`: feature space on finite sets and on
boxes with a mesh, observation space elsewhere; another representation is one more file here. The updates' arithmetic
fixes recorded bits: rewrite it only where a result is meant to change.
"""
