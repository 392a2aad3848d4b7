"""The comparison with the field: docs/field.md, the pages below it, and the open table."""
