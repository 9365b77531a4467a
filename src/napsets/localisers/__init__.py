"""How a threshold depends on the node: who counts for whom, and how much."""
