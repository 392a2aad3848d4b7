"""Plan, schedule and resume a sweep.

A whole sweep: plan, blocks, play here, by workers or on Ray, resume, stop, progress and estimates.

May be touched freely: none of it enters a result. Only `ray_start` and `ray_executor` import Ray;
the driver holds receipts, never data. A task that fails is a row, a task that is lost is played
again, and what is published stays.
"""
