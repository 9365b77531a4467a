"""How fast napsets is, beside the bare traversal in C and three other ways to compute the same thresholds.

``python -m benchmarks.speed`` builds its graphs from a seed in a temporary folder, runs every contender in a fresh
process, in turns and repeatedly, keeps what was measured in ``benchmarks/results/speed.json`` and writes tables and
plots from that file alone.
"""
