"""Pages that show commands and what they print: a command prints what its page shows.

Commands are indented and follow ``$``. A code block whose first line names a file is that file. The
line ``...`` stands for any lines that a page leaves out. Seconds are not compared.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from straggler.judging import systems
from straggler.rooms import find_rooms
from tests.house.repository import ROOT
from tests.straggler.command import Straggler

PAGES = ("README.md", "docs/first-steps.md")
LEFT_OUT = "..."
CODES = (0, 1, 3)
"""A broken promise and an undetermined one are results, too."""
ON_SPARK = ("grouping",)
"""Rooms that the figures of the main job are taken from on Spark."""
SECONDS = re.compile(r"(holds|broken) +[0-9.]+$")


class File(NamedTuple):
    """A file that a page tells its reader to save."""

    name: str
    text: str


class Command(NamedTuple):
    """A command, and the lines that a page shows as its output."""

    line: str
    shown: tuple[str, ...]


def steps_of(page: str) -> Iterator[File | Command]:
    """Yield what a reader of a page does, in order."""
    parts = re.finditer(
        r"^```\w+ (\S+)\n(.*?)^```|^    \$ ([^\n]*)\n((?:    [^\n]*\n)*)", page, re.M | re.S
    )
    for name, text, line, block in (part.groups() for part in parts):
        if name:
            yield File(name, text)
        else:
            yield from commands_of(line, block)


def commands_of(line: str, block: str) -> Iterator[Command]:
    """Yield the commands of one indented block."""
    shown: list[str] = []
    for each in [*(text[4:].rstrip() for text in block.splitlines()), "$ "]:
        if each.startswith("$ "):
            yield Command(line, tuple(shown))
            line, shown = each[2:], []
        else:
            shown.append(each)


def run(line: str, folder: Path) -> str:
    """Run a command as a reader does, with the sources of this checkout."""
    programs = Path(sys.executable).parent
    places = {"PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    if line.startswith("make "):  # .venv is there, whatever it is called
        line, folder = f"{line} READY= CLASSES= BIN={programs}", ROOT
        # Below the make that runs the tests, it would print the folders that it enters.
        places |= {"MAKEFLAGS": "", "MAKELEVEL": "0"}
    done = subprocess.run(
        line,
        shell=True,
        cwd=folder,
        env={**os.environ, **places},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in CODES, done.stdout + done.stderr
    return done.stdout


def assert_shown(shown: tuple[str, ...], printed: str) -> None:
    """Assert that lines were printed in this order, with nothing else between two of them."""
    left = [SECONDS.sub(r"\1", line.rstrip()) for line in printed.splitlines()]
    may_skip = False
    for line in (SECONDS.sub(r"\1", line) for line in shown):
        if line == LEFT_OUT:
            may_skip = True
            continue
        assert line in (left if may_skip else left[:1]), f"{line!r} is not next in:\n{printed}"
        left = left[left.index(line) + 1 :]
        may_skip = False
    assert may_skip or not left, f"more was printed:\n{printed}"


@pytest.fixture
def here(
    straggler: Straggler, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], str]:
    """Run a line as :func:`run` does, but ``straggler`` in this process, with its Spark."""
    monkeypatch.setattr(systems, "open_session", lambda _master: nullcontext(spark))

    def run_here(line: str) -> str:
        program, *arguments = shlex.split(line)
        if program != "straggler":
            return run(line, Path.cwd())
        sys.modules.pop("mine", None)  # a module of a page, which may have been edited
        done = straggler(*arguments)
        assert done.code in CODES, done.out + done.err
        return done.out

    return run_here


@pytest.mark.parametrize("name", PAGES)
def test_commands_print_what_the_page_shows(
    name: str, tmp_path: Path, here: Callable[[str], str]
) -> None:
    steps = list(steps_of((ROOT / name).read_text(encoding="utf-8")))
    assert sum(isinstance(step, Command) for step in steps) > 2
    for step in steps:
        if isinstance(step, File):
            (tmp_path / step.name).write_text(step.text, encoding="utf-8")
        elif not step.line.startswith("make "):
            assert_shown(step.shown, here(step.line))


# ------------------------------------------------------------------------------------ the main job


def main_job() -> Command:
    """Return the one command of the README that runs make."""
    steps = steps_of((ROOT / "README.md").read_text(encoding="utf-8"))
    (found,) = [each for each in steps if isinstance(each, Command) and "make" in each.line]
    return found


def figures_of(printed: str) -> tuple[list[str], list[str]]:
    """Return the rows of comparisons, and what agrees in every room.

    A row is reduced to its words, because columns are as wide as their rows need.
    """
    rows = [" ".join(SECONDS.sub(r"\1", line.rstrip()).split()) for line in printed.splitlines()]
    (agreement,) = re.findall(r"(?m)agrees with the reference (.*)\. Seed 0\.$", printed)
    return rows, agreement.split("; ")


@pytest.mark.long
def test_the_main_job_has_the_figures_that_the_readme_shows(
    here: Callable[[str], str],
) -> None:
    """Figures are those of the reference, so costly rooms are compared without Spark."""
    found = {}
    for room in find_rooms("all"):
        name = room.name
        system = "" if name in ON_SPARK else f"--system model.{name}:make_system --level steps"
        line = f"straggler diff {name} {room.quick} --reference model {system}"
        found[name] = figures_of(here(line))
    rows, agreed = figures_of("\n".join(main_job().shown))
    shown = [(row.partition(" ")[0], row) for row in rows if row.partition(" ")[0] in found]
    assert len(shown) > 1
    for name, row in shown:
        assert row in found[name][0]
    assert agreed == [each for _, of_room in found.values() for each in of_room]
    everything = f"{len(found)} comparisons, none broken: the Spark pipeline agrees"
    assert sum(row.startswith(everything) for row in rows) == 1


@pytest.mark.long
@pytest.mark.timeout(1800)  # two busy cores
def test_the_main_job_prints_what_the_readme_shows(tmp_path: Path) -> None:
    job = main_job()
    assert_shown(job.shown, run(job.line, tmp_path))


def test_the_job_of_the_readme_runs(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "incoming").mkdir()
    rows = "a,2026-03-01 08:00:03,40\na,2026-03-01 08:00:08,2\n"
    (tmp_path / "incoming" / "1.csv").write_text(rows, encoding="utf-8")
    job = (ROOT / "README.md").read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
    names: dict[str, Any] = {}
    # Java, which is running already, looks for relative paths elsewhere.
    exec(job.replace('"incoming"', repr(str(tmp_path / "incoming"))), names)
    found = names["query"].results().collect()
    assert {row.state for row in found} == {"exact"}
    assert max(row.value for row in found) == 42
    assert names["spark"] is spark
