"""How published results become tables, figures and verdicts: README.md says what lies where.

`folders.py` names the folders that programs here read and write.
"""

import cbobench as cbobench  # before NumPy, because it chooses the arithmetic
