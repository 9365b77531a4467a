"""Which method makes the smallest and most evenly reliable sets, on a dozen graphs: ``python -m benchmarks.sets``."""
