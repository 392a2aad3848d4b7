"""`python -m cbobench`."""

from cbobench.cli import main

raise SystemExit(main())
