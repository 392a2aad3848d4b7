"""The round loop and its recorder.

What a worker does with a task: the only round loop, the recorder of metrics, rows and their publication.

May be touched freely: what is recorded of a cell. With care: the loop's order of draws and calls, because a cell's
bits must not depend on its block; and the round loop enters the source hash of every result.
"""
