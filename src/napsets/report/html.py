"""HTML of a page: one file with template, style sheet, script and charts library in one text."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from napsets.checks.text import percent, visible
from napsets.errors import imported
from napsets.files.paths import replacing
from napsets.report.words import cell, code, sentence, unbroken

#: What a page may be called.
PAGE_SUFFIXES = (".html", ".htm")
ASSETS = Path(__file__).parent / "assets"
#: Exposes only vegaEmbed to the page's script.
_SNIPPET = "window.vegaEmbed = vegaEmbed;"


def write_text(path: str | os.PathLike[str], text: str) -> Path:
    """Write a text, whole or not at all."""
    with replacing(Path(path)) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return Path(path)


def filled(template: str, **values: Any) -> str:
    """Return a template with its values, the style sheet, the script and the charts library."""
    jinja2 = imported("jinja2", "report")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(ASSETS),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # Text is made visible before the template writes it; markup, which the template itself made, is let alone.
        finalize=lambda value: visible(value) if type(value) is str else value,
    )
    environment.filters |= {"cell": cell, "sentence": sentence, "code": code, "unbroken": unbroken, "percent": percent}
    assets = {name: (ASSETS / f"report.{name}").read_text(encoding="utf-8") for name in ("css", "js")}
    page: str = environment.get_template(template).render(
        style=assets["css"], script=assets["js"], library=library(), **values
    )
    words, script, rest = page.partition("<script")
    return unbroken(words) + script + rest


@lru_cache(maxsize=1)
def library() -> str:
    """Return the charts library (Vega, Vega-Lite and Vega-Embed) as one script."""
    vl_convert = imported("vl_convert", "report", "vl-convert-python")
    script: str = vl_convert.javascript_bundle(_SNIPPET)
    return script.replace("</script", r"<\/script")


def as_json(value: object) -> str:
    """Return JSON that may stand in a script element: ASCII, no NaN, and no `<` that could close it."""
    return json.dumps(_plain(value), separators=(",", ":")).replace("<", "\\u003c")


def _plain(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
