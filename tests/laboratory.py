"""The methods of `studies.peers`, taken out of the tables of the package, where importing `studies` enters them.

Tests of the package do not see them, in whatever order tests are collected. Import this module before `studies`.
"""

from __future__ import annotations

import studies  # noqa: F401
from napsets.localisers import LOCALISERS
from napsets.methods import METHODS
from napsets.scores import SCORES

#: Each table with a name and its entry.
PEERS = [
    (table, name, table.pop(name))
    for table in (METHODS, SCORES, LOCALISERS)
    for name in list(table)
    if table[name].__module__.startswith("studies.peers")
]
