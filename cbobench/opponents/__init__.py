"""Methods of other libraries (BoTorch, Optuna, pymoo, pycma, egobox, SMT-optim, SciPy and NOMAD),
found by location as all algorithms are; a file is of one library, or of local searches.

A file imports its library only when a run starts. Runs are played one at a time, seeded by our
streams.
"""
