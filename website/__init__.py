"""The documentation site: pages as they stand in docs/, one page per method, problem and suite, and
pictures of them.

`make site` builds it into build/site. Nothing generated is committed: pages come from classes and
suites, pictures from short plays, kept in .make/site by a hash of what they depend on.
"""

import cbobench as cbobench  # before NumPy, because it chooses the arithmetic
