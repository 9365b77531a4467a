"""Measured comparisons; not imported by the package."""
