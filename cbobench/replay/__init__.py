"""Plays drawn cells of published results again with the code at hand, and says where they differ.

With the libraries and the arithmetic of the play a cell is played anew and compared to the last
bit; with others it is asked round by round on its published history, so that differences do not add
up.
"""
