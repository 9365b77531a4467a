"""Install a wheel alone into an empty virtual environment and use it: what a user of `pip install napsets` gets.

Run as ``python .ci/try_wheel.py dist/napsets-….whl [python …]``; further arguments are interpreters to try it with.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

LABORATORY = Path(__file__).parents[1] / "studies"

#: The core alone: NumPy, SciPy and Numba, and nothing that an extra brings.
CORE = """
import sys
import numpy as np, napsets as ns
ring = ns.Graph.from_edge_index([np.arange(400), np.roll(np.arange(400), 1)], num_nodes=400)
p, y = np.tile([0.7, 0.3], (400, 1)), (np.random.default_rng(0).random(400) < 0.3).astype(int)
for method in (ns.NAPS(hops=20), ns.Auto()):
    sets = method.calibrate(ring, p, y, calibration=np.arange(0, 400, 2)).predict(np.arange(1, 400, 2))
    assert 0.8 <= ns.coverage(sets, y) <= 1.0
heavy = {"torch", "pyspark", "pyarrow", "typer", "altair", "pandas"} & set(sys.modules)
assert not heavy, heavy
from importlib.resources import files
assert files("napsets").joinpath("py.typed").is_file()
print(f"napsets {ns.__version__} on Python {sys.version.split()[0]}: {sets!r}")
"""


def check_contents(wheel: Path) -> None:
    """Check that the wheel and the source archive contain the package, and nothing else."""
    names = zipfile.ZipFile(wheel).namelist()
    assert "napsets/py.typed" in names, "the wheel is not typed"
    strange = [name for name in names if not name.startswith(("napsets/", "napsets-"))]
    assert not strange, f"the wheel brings {strange[:3]}"
    check_laboratory(zipfile.ZipFile(wheel))
    (source,) = wheel.parent.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        tops = {name.split("/")[1] for name in archive.getnames() if name.count("/")}
    assert {"src", "README.md", "LICENSE", "pyproject.toml"} <= tops, f"the source archive has only {tops}"


def check_laboratory(wheel: zipfile.ZipFile) -> None:
    """Check that the wheel contains nothing of the folder `studies`, and imports nothing from it."""
    laboratory = {path.read_bytes() for path in LABORATORY.rglob("*.py") if path.name != "__init__.py"}
    for name in wheel.namelist():
        source = wheel.read(name)
        brought = source in laboratory or {"studies", "peers", "training"} & set(name.split("/")[:-1])
        assert not brought, f"the wheel brings {name} of the laboratory"
        text = source.decode(errors="replace") if name.endswith(".py") else ""
        assert not re.search(r"^\s*(from|import) studies\b", text, flags=re.M), f"{name} imports the laboratory"
    print(f"{Path(str(wheel.filename)).name}: no study, no peer, no training recipe")


def try_with(python: str, wheel: Path) -> None:
    """Install the wheel with one interpreter, use the core, then the command."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([python, "-m", "venv", folder], check=True)
        programs = Path(folder) / ("Scripts" if sys.platform == "win32" else "bin")
        inside = str(programs / "python")
        pip = [inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, str(wheel)], check=True, cwd=folder)
        subprocess.run([inside, "-c", CORE], check=True, cwd=folder)
        subprocess.run([*pip, f"{wheel}[cli]"], check=True, cwd=folder)
        for command, wanted in ((["methods", "--json"], '"auto"'), (["predict", "--help"], "--edges")):
            program = [str(programs / "napsets"), *command]
            shown = subprocess.run(program, check=True, cwd=folder, capture_output=True, text=True)
            assert wanted in shown.stdout, shown.stdout


def main() -> None:
    """Try the wheel with this interpreter, or with those that are named."""
    wheel = Path(sys.argv[1]).resolve()
    check_contents(wheel)
    for python in sys.argv[2:] or [sys.executable]:
        try_with(python, wheel)


if __name__ == "__main__":
    main()
