"""Gaussian-process posteriors: their interface, representations, delays, and the choice of the
cheapest.

Algorithms are written against `interface.Posterior` alone and get one from `choice`: feature space
on finite sets and on boxes with a mesh, observation space elsewhere. A further representation is
one more file here. The arithmetic of updates fixes recorded bits.
"""
