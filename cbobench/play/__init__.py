"""The only round loop, the recorder of metrics, and the publication of a task's rows.

The order of the loop's draws and calls must stay, because a cell's bits must not depend on its
block. The round loop is part of the source hash of every result.
"""
