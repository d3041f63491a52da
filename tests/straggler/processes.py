"""``straggler`` in a process of its own, as a user runs it."""

import os
import subprocess
import sys
from pathlib import Path

PATIENCE_S = 240


def start(
    folder: Path, *arguments: str, module: str = "straggler.cli", scratch: str = "scratch"
) -> subprocess.Popen[str]:
    """Start ``straggler`` in ``folder``, which also gets its temporary files."""
    (folder / scratch).mkdir(exist_ok=True)
    environment = {"TMPDIR": str(folder / scratch), "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def write_stream(folder: Path) -> None:
    """Write a stream of two keys in which every fourth tuple is late."""
    rows = [
        f"{time_s if time_s % 4 else time_s - 9},{time_s % 7},{'ab'[time_s % 2]}"
        for time_s in range(20, 120)
    ]
    text = "seconds,value,key\n" + "\n".join(rows) + "\n"
    (folder / "stream.csv").write_text(text, encoding="utf-8")
