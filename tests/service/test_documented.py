"""What the page on production says can be typed: every request, and the client."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
from pathlib import Path

import pytest

from napsets.cli._store import live_from_files
from napsets.files.reading import Reading

from .test_killed import Server

PAGE = (Path(__file__).parents[2] / "docs" / "tasks" / "production.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}[^\n]*\n(.*?)```", PAGE, flags=re.DOTALL)


@pytest.fixture
def server(tmp_path: Path) -> Server:
    for name, text in re.findall(r'```csv title="([^"]+)"\n(.*?)```', PAGE, flags=re.DOTALL):
        (tmp_path / name).write_text(text, encoding="utf-8")
    files = [tmp_path / name for name in ("edges.csv", "p.csv", "y.csv")]
    live = live_from_files(*files, Reading(), lambda text: None, [], method="split")
    live.save(tmp_path / "store")
    return Server(tmp_path / "store")


def test_every_request_and_the_client_are_answered(server: Server) -> None:
    pytest.importorskip("requests")
    commands = [line for block in blocks("bash") for line in block.splitlines() if line.startswith("curl")]
    assert len(commands) == 12
    for command in commands:
        words = shlex.split(command.replace("http://127.0.0.1:8000", server.url))
        answer = subprocess.run([words[0], "--silent", "--fail-with-body", *words[1:]], capture_output=True, text=True)
        assert answer.returncode == 0, (command, answer.stdout)
        assert answer.stdout
    (client,) = [block for block in blocks("python") if "requests" in block]
    exec(client.replace("http://127.0.0.1:8000", server.url), {})
    assert server.stop(signal.SIGTERM) == 0


def test_the_unit_and_the_container_start_the_service_with_options_that_there_are() -> None:
    from typer.main import get_command

    from napsets.cli import make_app

    options = {
        name
        for parameter in get_command(make_app()).commands["serve"].params
        for name in parameter.opts  # type: ignore[attr-defined]
    }
    folder = Path(__file__).parents[2] / "examples" / "service"
    for name in ("Dockerfile", "napsets.service"):
        used = set(re.findall(r"--[a-z-]+", re.search(r"(?:ENTRYPOINT|ExecStart=).*", (folder / name).read_text())[0]))  # type: ignore[index]
        assert used <= options
