"""One rule for what is shown of other people's text, on pages and in terminals."""

from __future__ import annotations

import json

import pytest

from napsets.checks.text import shown_name, visible, visible_json

#: Marks without width, the byte order mark, what turns text around, what breaks lines, what controls a terminal.
UNSEEN = [
    *map(chr, range(0x200B, 0x2010)), "\ufeff", "\u061c", *map(chr, range(0x202A, 0x202F)),
    *map(chr, range(0x2060, 0x2070)), "\u2028", "\u2029", "\x00", "\x1b", "\x7f", "\x9b", "\ud800", "\ufffe", "\uffff",
]  # fmt: skip


@pytest.mark.parametrize("letter", UNSEEN, ids=lambda letter: f"U+{ord(letter):04X}")
def test_what_would_be_obeyed_or_hidden_is_shown_as_an_escape(letter):
    escape = letter.encode("unicode_escape").decode()
    assert visible(f"a{letter}b") == f"a{escape}b"
    assert shown_name(letter) == escape
    assert visible(f"a\n{letter}", lines=True) == f"a\n{escape}"


@pytest.mark.parametrize("letter", UNSEEN, ids=lambda letter: f"U+{ord(letter):04X}")
def test_json_means_the_same_and_holds_none_of_it(letter):
    text = visible_json(json.dumps(letter, ensure_ascii=False))
    assert json.loads(text) == letter
    assert letter not in text


@pytest.mark.parametrize("text", ["né", "日本", "a b", "👩", "∞ – τ", "\u00a0x", "\u200a."])
def test_text_that_can_be_seen_stays_as_it_is(text):
    assert visible(text) == shown_name(text) == text


@pytest.mark.parametrize("module", ["napsets.cli._output", "napsets.cli", "napsets.report.html"])
def test_the_terminal_and_the_page_go_by_the_same_rule(module):
    pytest.importorskip("rich")
    assert __import__(module, fromlist=["visible"]).visible is visible
