"""What the papers' suites show: docs/reproduction.md, and the figures of docs/papers.md."""
