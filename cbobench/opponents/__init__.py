"""Methods of other libraries (BoTorch, Optuna, pymoo, pycma, egobox, NOMAD): one file each, found
by location as all algorithms are.

A file imports its library only when a run starts. Runs are played one at a time, seeded by our
streams.
"""
