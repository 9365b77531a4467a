"""The reference pages leave nothing out: every command, every option, every public name."""

from __future__ import annotations

import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

import napsets

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def reference():
    pytest.importorskip("typer")
    spec = spec_from_file_location("docs_hooks", ROOT / "docs" / "hooks.py")
    hooks = module_from_spec(spec)
    spec.loader.exec_module(hooks)
    return hooks.on_page_markdown((ROOT / "docs" / "command.md").read_text(encoding="utf-8"), page=None)


def commands():
    typer_main = pytest.importorskip("typer.main")
    from napsets.cli import make_app

    return typer_main.get_command(make_app()).commands


def test_every_command_has_a_section_with_its_help(reference):
    for name, command in commands().items():
        assert f"\n## napsets {name}\n" in reference
        assert command.help.split("\n")[0].split("|")[0].split("--")[0].strip() in reference


def test_every_option_stands_in_its_commands_section(reference):
    sections = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", reference, flags=re.M | re.S))
    for name, command in commands().items():
        text = sections[f"napsets {name}"] + sections["Common options"]
        for option in command.params:
            if option.param_type_name == "option" and option.name not in ("help", "help_all"):
                assert f"`{option.opts[0]}`" in text, f"{name} {option.opts[0]}"


def test_every_public_name_stands_in_the_api_reference():
    pages = "\n".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "api").glob("*.md"))
    shown = set(re.findall(r"^::: napsets(?:\.[a-z_]+)*?\.(\w+)$", pages, flags=re.M))
    # Modules at the edges are shown by what is in them.
    shown |= set(re.findall(r"^::: napsets\.(\w+)\.", pages, flags=re.M))
    assert sorted(set(napsets.__all__) - shown) == []
