"""The recording in README: ``python -m benchmarks.recording`` runs its first check on Spark.

What the check prints in an empty folder becomes docs/figures/first-check.svg, a still picture of a
terminal; a test compares both.
"""

import re
import shlex
import subprocess
import sys
import tempfile
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "figures" / "first-check.svg"
COLUMNS = 100
"""Width of the terminal, whose longer lines are folded."""


def first_check(page: str) -> tuple[str, str]:
    """Return the job of a page, and the first check that the page shows."""
    job = re.search(r"^```python jobs\.py\n(.*?)^```", page, re.M | re.S)
    command = re.search(r"^    \$ (straggler check .*)$", page, re.M)
    if job is None or command is None:
        msg = "the page has no jobs.py, or no check"
        raise ValueError(msg)
    return job[1], command[1]


def record(command: str, output: str) -> str:
    """Return a terminal as SVG, with a command and what it has printed."""
    console = Console(width=COLUMNS, record=True, file=StringIO())
    console.print(Text(f"$ {command}", style="bold"))
    console.print(Text(output.rstrip()))
    drawn = console.export_svg(title="", unique_id="check")
    # A page with the picture should ask no other server for a font.
    return re.sub(r" *@font-face \{.*?\}\n", "", drawn, flags=re.S)


def main() -> None:
    """Run the first check of README and draw what it prints."""
    job, command = first_check((ROOT / "README.md").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "jobs.py").write_text(job, encoding="utf-8")
        asked = [sys.executable, "-m", "straggler", *shlex.split(command)[1:]]
        done = subprocess.run(asked, cwd=folder, capture_output=True, text=True, check=False)
    PICTURE.write_text(record(command, done.stdout), encoding="utf-8")


if __name__ == "__main__":
    main()
