"""The laboratory: the paper's tables and figures, the comparison of all methods, and the studies of sets and drift.

`python -m studies --help` lists the commands. Every number comes from rows in Parquet files in ``results``; tables,
figures and the pages of the documentation are made from rows and from nothing else.

A study is one module with functions. To add one, write

- a `rows.Kind`: the columns that are the settings of a row, and a function that computes rows from settings;
- a function that lists the settings of the rows that are wanted, as dictionaries;
- `summary`, `page` and `figures`, which make tables for the terminal, a page (its text is in ``pages``) and charts;

and a command in ``__main__``. Methods of other papers to compare with are in `peers`; importing `studies` enters them
in the table of methods.
"""

from __future__ import annotations

from studies import peers

__all__ = ["peers"]
