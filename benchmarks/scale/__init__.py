"""How a sweep grows: a million cells on virtual machines that fail, and the nodes of a real
cluster.
"""
