"""mzlite: a mini Materialize in Python. See docs/architecture.md."""
