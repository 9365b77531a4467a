"""The page at ``/``: one text with its own style and script, which fetches everything else from the service."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

_ASSETS = Path(__file__).parent / "assets"
_STYLE = Path(__file__).parent.parent / "report" / "assets" / "report.css"


@lru_cache(maxsize=1)
def render_page() -> str:
    """Return the page; it holds nothing that is known of the graph."""
    parts = {
        "STYLE": _STYLE.read_text(encoding="utf-8") + (_ASSETS / "service.css").read_text(encoding="utf-8"),
        "SCRIPT": (_ASSETS / "service.js").read_text(encoding="utf-8"),
    }
    text = (_ASSETS / "service.html").read_text(encoding="utf-8")
    for name, part in parts.items():
        text = text.replace(f"/*{name}*/", part)
    return text
