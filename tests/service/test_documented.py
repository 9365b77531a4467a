"""What the page on production says can be typed: every request, and the client."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from napsets.cli._options import InputFiles, ReadingOptions
from napsets.cli.stores import live_from_files
from skips import lacking

from .test_killed import Server

PAGE = (Path(__file__).parents[2] / "docs" / "tasks" / "production.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}[^\n]*\n(.*?)```", PAGE, flags=re.DOTALL)


@pytest.fixture
def server(tmp_path: Path) -> Server:
    for name, text in re.findall(r'```csv title="([^"]+)"\n(.*?)```', PAGE, flags=re.DOTALL):
        (tmp_path / name).write_text(text, encoding="utf-8")
    files = [tmp_path / name for name in ("edges.csv", "p.csv", "y.csv")]
    live = live_from_files(InputFiles(*files), ReadingOptions(), lambda text: None, [], method="split")
    live.save(tmp_path / "store")
    return Server(tmp_path / "store")


def test_every_request_and_the_client_are_answered(server: Server) -> None:
    pytest.importorskip("requests")
    commands = [line for block in blocks("bash") for line in block.splitlines() if line.startswith("curl")]
    assert len(commands) == 15
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


@pytest.mark.slow  # systemd is not part of every image that runs the tests
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        lacking("systemd-analyze is not installed", "apt-get install systemd")
    text = (Path(__file__).parents[2] / "examples" / "service" / "napsets.service").read_text(encoding="utf-8")
    unit = tmp_path / "napsets.service"
    (tmp_path / "napsets").symlink_to(sys.executable)  # whose own path may hold spaces
    unit.write_text(text.replace("/opt/napsets/bin/napsets", str(tmp_path / "napsets")), encoding="utf-8")
    checked = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, timeout=60)
    assert (checked.returncode, checked.stderr) == (0, "")


def dockerfile(tmp_path: Path) -> str:
    text = (Path(__file__).parents[2] / "examples" / "service" / "Dockerfile").read_text(encoding="utf-8")
    return text.replace("/data", str(tmp_path / "data")).replace("/home/napsets", str(tmp_path / "home"))


def test_the_container_starts_is_healthy_and_keeps_its_volume(tmp_path: Path) -> None:
    """What the Dockerfile says, without an image: its environment, its entry point and its check of health."""
    text = dockerfile(tmp_path)
    entry = json.loads(re.search(r"^ENTRYPOINT (.*)$", text, flags=re.MULTILINE)[1])  # type: ignore[index]
    health = shlex.split(re.search(r"^HEALTHCHECK .*?CMD (.*)$", text, flags=re.MULTILINE)[1])  # type: ignore[index]
    for name, content in re.findall(r'```csv title="([^"]+)"\n(.*?)```', PAGE, flags=re.DOTALL):
        (tmp_path / name).write_text(content, encoding="utf-8")
    first = re.search(r"napsets \\\n# +(--edges .*)", text)[1].replace("/files", str(tmp_path))  # type: ignore[index]
    (tmp_path / "data").mkdir()
    for options in (shlex.split(first), []):
        command = [sys.executable, "-m", *entry, *options, "--port", "0", "--json"]
        service = subprocess.Popen(
            command, env=os.environ | {"NAPSETS_TOKEN": "x" * 20}, stdout=subprocess.PIPE, text=True
        )
        assert service.stdout is not None
        port = json.loads(service.stdout.readline())["url"].rsplit(":", 1)[1]
        check = [sys.executable, *(word.replace(":8000", f":{port}") for word in health[1:])]
        assert subprocess.run(check, timeout=60).returncode == 0
        service.terminate()
        assert service.wait(60) == 0
        service.stdout.close()


@pytest.mark.slow  # all kernels are compiled
def test_the_image_is_built_from_the_source_and_compiles_all_kernels_of_a_service(tmp_path: Path) -> None:
    text = dockerfile(tmp_path)
    assert "COPY . /source" in text
    assert "pip install --no-cache-dir '/source[serve]'" in text
    environment = os.environ | dict(re.findall(r"^ENV (\w+)=(.*)$", text, flags=re.MULTILINE))
    build = json.loads(re.search(r"^RUN (\[.*\])$", text, flags=re.MULTILINE)[1])  # type: ignore[index]
    script = Path(__file__).parents[2] / "examples" / "service" / Path(build[1]).name
    subprocess.run([sys.executable, str(script)], env=environment, check=True)
    files = set(Path(environment["NUMBA_CACHE_DIR"]).rglob("*.nbc"))
    assert files
    for name, content in re.findall(r'```csv title="([^"]+)"\n(.*?)```', PAGE, flags=re.DOTALL):
        (tmp_path / name).write_text(content, encoding="utf-8")
    paths = [tmp_path / name for name in ("edges.csv", "p.csv", "y.csv")]
    options = [
        word for pair in zip(("--edges", "--probabilities", "--labels"), map(str, paths), strict=True) for word in pair
    ]
    command = [sys.executable, "-m", "napsets", "serve", str(tmp_path / "store"), *options, "--port", "0", "--json"]
    service = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert service.stdout is not None
    assert service.stdout.readline()
    service.terminate()
    assert "compiling kernels" not in service.communicate(timeout=60)[1]
    assert set(Path(environment["NUMBA_CACHE_DIR"]).rglob("*.nbc")) == files
