"""Spark's process that forks Python workers, which loads the package once for all of them."""

from __future__ import annotations

from pyspark import daemon

import napsets.spark  # noqa: F401

if __name__ == "__main__":
    daemon.manager()
