"""Results that are published, what pages and pictures are made of, and the scripts that play and
tabulate them.

Bundles of the comparison with the field (*.zip), what of them was played again (confirmed.json),
the findings about the papers' claims, their figures' rows, and measurements of speed.
`website` makes the site's own pages.
"""

import cbobench as cbobench  # before NumPy, because it chooses the arithmetic
