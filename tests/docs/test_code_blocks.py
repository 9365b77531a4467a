"""Every code block of the documentation runs, page by page, and prints what the page says it prints.

A page's Python blocks share one namespace, its commands and files one empty folder. What counts is the word after the
fence:

- ``python`` is executed, ``bash`` is run line by line (the ``napsets`` command only);
- ``csv`` and ``toml`` with a title are written to the file of that name;
- ``text`` with the title "Output" must be what the block before it printed. ``…`` stands for any word, alone on a line
  for any lines. Because another BLAS may round otherwise, decimals may differ by one in the last place and counts of a
  hundred or more by one in a hundred.

A comment before a block says where that does not hold: ``<!-- not run: the reason -->``, ``<!-- slow: the reason -->``
for a block that only the slow tests run, or ``<!-- needs gnn -->`` for one that is left out where an extra is missing.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import textwrap
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
#: What tells whether an extra is installed.
EXTRAS = {"cli": "typer", "gnn": "torch_geometric", "report": "vl_convert", "sklearn": "sklearn", "spark": "pyspark"}
FENCE = re.compile(r"^(?P<indent>\s*)```(?P<language>[\w-]*)\s*(?P<rest>.*)$")
COMMENT = re.compile(r"^\s*<!-- (?:(?P<kind>not run|slow): (?P<reason>.+)|needs (?P<extra>\w+)) -->$")


@dataclass
class Block:
    """One fenced block of a page."""

    language: str
    title: str
    line: int
    kind: str = ""  #: "not run" or "slow"
    reason: str = ""
    extra: str = ""
    lines: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return textwrap.dedent("\n".join(self.lines))

    @property
    def is_output(self) -> bool:
        return self.language == "text" and self.title == "Output"

    @property
    def available(self) -> bool:
        return not self.extra or find_spec(EXTRAS[self.extra]) is not None


def blocks_of(text: str) -> list[Block]:
    found: list[Block] = []
    inside, before = False, ""
    for number, line in enumerate(text.splitlines(), start=1):
        fence = FENCE.match(line)
        if inside and line.strip() == "```":
            inside = False
        elif inside:
            found[-1].lines.append(line)
        elif fence:
            title = re.search(r'title="([^"]*)"', fence["rest"])
            note = COMMENT.match(before)
            block = Block(fence["language"], title[1] if title else "", number)
            if note:
                block.kind, block.reason, block.extra = (note[name] or "" for name in ("kind", "reason", "extra"))
            found.append(block)
            inside = True
        if line.strip():
            before = line
    assert not inside, "a block is not closed"
    return found


def run_python(block: Block, names: dict[str, object], page: Path) -> str:
    printed = io.StringIO()
    # Blank lines in front, so that an error points at the page's own line.
    code = compile("\n" * block.line + block.text, str(page), "exec")
    with contextlib.redirect_stdout(printed):
        exec(code, names)
    return printed.getvalue()


def run_commands(block: Block) -> str:
    from typer.testing import CliRunner

    from napsets.cli import make_app

    printed = ""
    for command in block.text.replace("\\\n", " ").splitlines():
        words = shlex.split(command, comments=True)
        if not words:
            continue
        assert words[0] == "napsets", f"only the napsets command is run here; mark {words[0]!r} as not run, and why"
        result = CliRunner().invoke(make_app(), words[1:], prog_name="napsets")
        assert result.exit_code == 0, f"{command}\n{result.output}"
        printed += result.stdout
    return printed


def check_output(block: Block, printed: str, where: str) -> None:
    said, seen = ([line.rstrip() for line in text.strip().splitlines()] for text in (block.text, printed))
    assert same_lines(said, seen), f"{where}: the page shows\n\n{block.text}\n\nbut what is printed is\n\n{printed}"


def same_lines(said: list[str], seen: list[str]) -> bool:
    if not said:
        return not seen
    if said[0].strip() == "…":
        return any(same_lines(said[1:], seen[skipped:]) for skipped in range(len(seen) + 1))
    return bool(seen) and same_line(said[0], seen[0]) and same_lines(said[1:], seen[1:])


def same_line(said: str, seen: str) -> bool:
    a, b = (re.findall(r"-?\d[\d,]*(?:\.\d+)?|[^\s\d]+", line) for line in (said, seen))
    return len(a) == len(b) and all(same_word(x, y) for x, y in zip(a, b, strict=True))


def same_word(said: str, seen: str) -> bool:
    if said in ("…", seen):
        return True
    if re.fullmatch(r"[\d,]+", said) and re.fullmatch(r"[\d,]+", seen):
        counts = [int(word.replace(",", "")) for word in (said, seen)]
        return counts[0] >= 100 and abs(counts[0] - counts[1]) <= 0.01 * counts[0]
    numbers = [re.fullmatch(r"-?[\d,]+\.(\d+)", word) for word in (said, seen)]
    if not all(numbers) or len(numbers[0][1]) != len(numbers[1][1]):
        return False
    difference = abs(float(said.replace(",", "")) - float(seen.replace(",", "")))
    return difference < 1.5 * 10.0 ** -len(numbers[0][1])


def run_page(page: Path, left_out: tuple[str, ...]) -> None:
    names: dict[str, object] = {"__name__": "__main__"}
    printed, shown = "", True
    for block in blocks_of(page.read_text(encoding="utf-8")):
        where = f"{page.relative_to(ROOT)}, line {block.line}"
        if block.is_output:
            if shown:
                check_output(block, printed, where)
            continue
        shown = block.kind not in left_out and block.available
        if not shown:
            continue
        if block.language == "python":
            printed = run_python(block, names, page)
        elif block.language == "bash":
            printed = run_commands(block)
        elif block.language in ("csv", "toml"):
            assert block.title, f"{where}: a {block.language} block needs the title of the file that it is"
            Path(block.title).write_text(block.text + "\n", encoding="utf-8")
        else:
            assert block.language in ("", "text"), f"{where}: {block.language} blocks are not known to this test"


def slow_pages() -> list[Path]:
    return [page for page in PAGES if any(block.kind == "slow" for block in blocks_of(page.read_text("utf-8")))]


@pytest.mark.filterwarnings("ignore::UserWarning:torch.*", "ignore::UserWarning:sklearn.*")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_code_of(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_page(page, left_out=("not run", "slow"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning:torch.*")
@pytest.mark.parametrize("page", slow_pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_the_slow_code_of(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_page(page, left_out=("not run",))


def test_what_is_not_run_says_why():
    for page in PAGES:
        for block in blocks_of(page.read_text(encoding="utf-8")):
            assert not block.reason or len(block.reason.split()) >= 3
            assert block.extra in ("", *EXTRAS)


def test_the_comparison_forgives_rounding_and_nothing_else():
    assert same_line("coverage 0.90, … seconds", "coverage 0.91, 12 seconds")
    assert same_line("│ 1,024.50 │", "│ 1,024.51 │")
    assert not same_line("coverage 0.90", "coverage 0.92")
    assert same_line("198 empty", "199 empty")
    assert not same_line("198 empty", "201 empty")
    assert not same_line("31 nodes", "32 nodes")
    assert not same_line("0.90", "0.901")
    assert not same_line("full", "empty")
    assert same_lines(["a", "…", "d"], ["a", "b", "c", "d"])
    assert not same_lines(["a", "…", "d"], ["a", "b", "c"])


def test_a_block_knows_its_language_title_and_comment():
    text = '<!-- needs gnn -->\n\n```python title="a.py"\nx = 1\n```\n\n```text title="Output"\n1\n```\n'
    first, second = blocks_of(text)
    assert (first.language, first.title, first.extra, first.text) == ("python", "a.py", "gnn", "x = 1")
    assert second.is_output
