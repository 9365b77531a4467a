"""Every code block of the documentation runs, page by page, and prints what the page says it prints.

A page's Python blocks share one namespace, its commands and files one folder, empty but for the ``benchmarks`` and
``results`` of the repository, whose graphs and predictions pages may read. What counts is the word after the fence:

- ``python`` is executed, ``bash`` is run line by line (the ``napsets`` command only);
- ``csv`` and ``toml`` with a title are written to the file of that name;
- ``text`` with the title "Output" must be what the block before it printed, word for word. ``…`` stands for any word,
  alone on a line for any lines.

A comment before a block says where that does not hold, in notes that a semicolon divides:

- ``<!-- not run: the reason -->``;
- ``<!-- slow: the reason -->`` for a block that only the slow tests run;
- ``<!-- needs gnn -->`` for one that is left out where an extra is missing;
- ``<!-- trained: 0.75 within 0.70 to 0.80 -->`` for an output that hangs on a trained model, whose last digits differ
  between processors and versions: the number on the page, and the spread that was measured over seeds.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
#: What tells whether an extra is installed.
EXTRAS = {"cli": "typer", "gnn": "torch_geometric", "report": "vl_convert", "sklearn": "sklearn", "spark": "pyspark"}
FENCE = re.compile(r"^(?P<indent>\s*)```(?P<language>[\w-]*)\s*(?P<rest>.*)$")
NOTE = r"(?:not run: |slow: |needs |trained: )"
COMMENT = re.compile(rf"^\s*<!-- ({NOTE}.+) -->$")
NEXT_NOTE = re.compile(f"; (?={NOTE})")
SPREAD = re.compile(r"(\S+) within (\S+) to (\S+?)(?:, |$)")
#: The least and the greatest that a number on a page may turn out to be.
Spread = Mapping[str, tuple[float, float]]


@dataclass
class Block:
    """One fenced block of a page."""

    language: str
    title: str
    line: int
    kind: str = ""  #: "not run" or "slow"
    reason: str = ""
    extra: str = ""
    spread: dict[str, tuple[float, float]] = field(default_factory=dict)  #: of numbers that hang on a trained model
    lines: list[str] = field(default_factory=list)

    def annotate(self, comment: str) -> None:
        """Take down what the comment before the block says."""
        for note in NEXT_NOTE.split(comment):
            kind, rest = re.fullmatch(r"(needs|[^:]+):? (.+)", note).groups()
            if kind == "needs":
                self.extra = rest
            elif kind == "trained":
                self.spread = {number: (float(low), float(high)) for number, low, high in SPREAD.findall(rest)}
                assert self.spread, f"{note!r} must state a spread"
            else:
                self.kind, self.reason = kind, rest

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
    results: list[Block] = []
    inside, before = False, ""
    for number, line in enumerate(text.splitlines(), start=1):
        fence = FENCE.match(line)
        if inside and line.strip() == "```":
            inside = False
        elif inside:
            results[-1].lines.append(line)
        elif fence:
            title = re.search(r'title="([^"]*)"', fence["rest"])
            note = COMMENT.match(before)
            block = Block(fence["language"], title[1] if title else "", number)
            if note:
                block.annotate(note[1])
            results.append(block)
            inside = True
        if line.strip():
            before = line
    assert not inside, "a block is not closed"
    return results


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
    expected, seen = ([line.rstrip() for line in text.strip().splitlines()] for text in (block.text, printed))
    same = same_lines(expected, seen, block.spread)
    assert same, f"{where}: the page shows\n\n{block.text}\n\nbut what is printed is\n\n{printed}"


def same_lines(expected: list[str], seen: list[str], spread: Spread) -> bool:
    if not expected:
        return not seen
    if expected[0].strip() == "…":
        return any(same_lines(expected[1:], seen[skipped:], spread) for skipped in range(len(seen) + 1))
    return bool(seen) and same_line(expected[0], seen[0], spread) and same_lines(expected[1:], seen[1:], spread)


def same_line(expected: str, seen: str, spread: Spread) -> bool:
    a, b = (re.findall(r"-?\d[\d,]*(?:\.\d+)?|[^\s\d]+", line) for line in (expected, seen))
    return len(a) == len(b) and all(same_word(x, y, spread) for x, y in zip(a, b, strict=True))


def same_word(expected: str, seen: str, spread: Spread) -> bool:
    if expected in ("…", seen):
        return True
    return expected in spread and is_number(seen) and spread[expected][0] <= float(seen) <= spread[expected][1]


def is_number(word: str) -> bool:
    return re.fullmatch(r"-?\d+(?:\.\d+)?", word) is not None


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


def enter(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a folder where the graphs and predictions of the repository are found as from its root."""
    for name in ("benchmarks", "results"):
        (folder / name).symlink_to(ROOT / name, target_is_directory=True)
    monkeypatch.chdir(folder)


def pages(kind: str | None = None) -> Iterator[object]:
    """Yield the pages, or those with a block of some kind, marked by what their blocks need."""
    for page in PAGES:
        blocks = [block for block in blocks_of(page.read_text("utf-8")) if block.kind in (kind or "", "")]
        if kind is None or any(block.kind == kind for block in blocks):
            marks = [pytest.mark.gnn] if any(block.extra == "gnn" for block in blocks) else []
            yield pytest.param(page, marks=marks, id=str(page.relative_to(ROOT)))


@pytest.mark.filterwarnings("ignore::UserWarning:torch.*", "ignore::UserWarning:sklearn.*")
@pytest.mark.parametrize("page", [*pages()])
def test_the_code_of(page, tmp_path, monkeypatch):
    enter(tmp_path, monkeypatch)
    run_page(page, left_out=("not run", "slow"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning:torch.*")
@pytest.mark.parametrize("page", [*pages("slow")])
def test_the_slow_code_of(page, tmp_path, monkeypatch):
    enter(tmp_path, monkeypatch)
    run_page(page, left_out=("not run",))


def test_what_is_not_run_says_why():
    for page in PAGES:
        for block in blocks_of(page.read_text(encoding="utf-8")):
            assert not block.reason or len(block.reason.split()) >= 3
            assert block.extra in ("", *EXTRAS)


def test_the_first_lines_of_the_readme_run_everywhere():
    """No extra, no training: its output is the same on every processor, and compared to the last digit."""
    code, output = [block for block in blocks_of((ROOT / "README.md").read_text("utf-8")) if block.language][:2]
    assert len([line for line in code.lines if line]) <= 11
    assert (code.language, code.kind, code.extra) == ("python", "", "")
    assert output.is_output
    assert output.spread == {}
    assert "…" not in output.text


def test_only_pages_that_say_so_leave_numbers_open():
    left_open = {
        page.relative_to(ROOT).as_posix()
        for page in PAGES
        if any(block.spread for block in blocks_of(page.read_text("utf-8")))
    }
    trained = {"docs/models.md", "docs/tasks/pyg.md"}
    assert left_open == trained, "examples start from committed probabilities wherever they can"
