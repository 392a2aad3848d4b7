"""How good what is computed is, by simulation and by search.

- `maximiser`: how often a dense search beats the maximiser on boxes;
- `coverage`: how often intervals hold the true value;
- `gate_level`: how often comparisons of two runs, and the stars of tables, are wrong;
- `portable`: whether plays have the same bits on every kind of CPU;
- `measure_tuning`: the measured table of the problem `tuning-under-deadline`.
"""
