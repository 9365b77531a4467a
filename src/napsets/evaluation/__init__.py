"""What sets are worth: metrics, groups, methods side by side."""
