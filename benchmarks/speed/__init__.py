"""What people wait for, what a round costs, and how many calls it makes, on one thread.

- `bench`: the cases of `cases`, here, or here and at another commit in turns;
- `calls`: how many calls of Python a round makes, which a test holds;
- `curves`: a round over seeds, actions, constraints, inputs and rounds, for docs/speed.md;
- `probe`: a round of the same algebra in C, where there is a compiler;
- `rounds`: a round on a box, our methods beside BoTorch's.
"""

import os

from cbobench.threads import THREAD_VARIABLES

# Libraries look at these when they are loaded, and NumPy is not loaded yet.
os.environ |= dict.fromkeys(THREAD_VARIABLES, "1")
