"""What "the mass reaches a level" means: three rules, and the mass that each of them needs.

Plain Python, which NumPy code calls and kernels compile.
"""

from __future__ import annotations

__all__ = ["ABOVE", "AT_LEAST", "NOMINAL", "needed_mass"]

#: mass ≥ level·(1 + total)·(1 − rounding): what is reached but for rounding counts as reached.
NOMINAL = 0
#: mass / (1 + total) ≥ level, as float64 divides.
AT_LEAST = 1
#: mass / (1 + total) > level, as float64 divides.
ABOVE = 2


def needed_mass(level: float, rule: int, total: float, rounding: float) -> float:
    """Return the smallest mass that reaches a level by a rule: −∞ where none is needed, +∞ where none is enough.

    Masses are compared with what this returns by ≥, whichever the rule. That is the same as dividing each of them:
    division by one number never decreases, so there is a smallest float whose quotient is large enough.
    """
    whole = 1.0 + total
    if not (level < float("inf") and whole < float("inf")):  # NaN among them: halving would never end
        return float("inf")
    if rule == NOMINAL:
        needed = level * whole * (1.0 - rounding)
        return needed if needed > 0.0 else -float("inf")
    above = rule == ABOVE
    if level < 0.0 or (level == 0.0 and not above):
        return -float("inf")
    # Two floats with the wanted one between them, then halving: as a rule a handful of floats lies between.
    high = level * whole * (1.0 + 1e-15) + whole * 1e-323
    while not (high / whole > level if above else high / whole >= level):
        high *= 2.0
    low = level * whole * (1.0 - 1e-15)
    if low / whole > level if above else low / whole >= level:
        low = 0.0
    while True:
        middle = low + (high - low) / 2.0
        if middle <= low or middle >= high:
            return high
        if middle / whole > level if above else middle / whole >= level:
            high = middle
        else:
            low = middle
