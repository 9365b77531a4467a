"""Graphs that change: an event log, the state that it folds to, and sets that hold now.

The state is a function of settings and log. The same log gives the same bits, however it was batched, saved, restarted
or replayed; and the sets are those of a batch calibration of the present graph and outputs under the same map.
"""

from __future__ import annotations

from napsets.live import monitoring

__all__ = ["monitoring"]
