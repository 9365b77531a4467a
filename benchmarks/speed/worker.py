"""The fresh process: ``python -m benchmarks.speed.worker FOLDER SPEC`` does one task and prints its figures as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from benchmarks.speed.tasks import TASKS


def main() -> None:
    folder, spec = Path(sys.argv[1]), json.loads(sys.argv[2])
    print(json.dumps(TASKS[spec["task"]](spec, folder)))


if __name__ == "__main__":
    main()
