"""``python -m napsets``: the command, for the interpreter that runs it."""

from __future__ import annotations

from napsets.cli import main

if __name__ == "__main__":
    main()
