"""One self-contained HTML page about prediction sets: results in, a file out, no network needed to read it."""

from __future__ import annotations

from napsets.report.page import ReportData, page_data, render, write_page, write_report

__all__ = ["ReportData", "page_data", "render", "write_page", "write_report"]
