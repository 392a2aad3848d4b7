"""Plays drawn cells of published results again with the code at hand, and says where they differ.

A cell is played only where the libraries and the arithmetic of its play are here: then it is the
same to the last bit, or it differs. All others are not checked, and each says why.
"""
