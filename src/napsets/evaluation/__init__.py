"""Evaluation of predictions: metrics, groups, comparison of methods."""
