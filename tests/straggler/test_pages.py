"""Pages say what the code says: generated ones are current, and commands print what is shown.

Commands are indented and follow ``$``. A code block whose first line names a file is that file. The
line ``...`` stands for any lines that a page leaves out. Seconds are not compared.
"""

import html
import os
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from benchmarks.guide import TABLES
from benchmarks.pages import DOCS, pages
from benchmarks.recording import PICTURE, first_check
from straggler.cli.render import markdown
from straggler.judging import systems
from tests.house.repository import ROOT
from tests.straggler.command import Straggler

PAGES = ("README.md", "docs/first-steps.md")
LEFT_OUT = "..."
CODES = (0, 1, 3)
"""A broken promise and an undetermined one are results, too."""
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
    file, line = r"^```\w+ (\S+)\n(.*?)^```", r"^    \$ ([^\n]*)\n((?:    [^\n]*\n|\n(?=    ))*)"
    parts = re.finditer(f"{file}|{line}", page, re.M | re.S)
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


def follow(page: str, folder: Path, run_line: Callable[[str], str]) -> int:
    """Do what a page says, but for make, and compare; return the number of its commands."""
    steps = list(steps_of((ROOT / page).read_text(encoding="utf-8")))
    for step in steps:
        if isinstance(step, File):
            (folder / step.name).write_text(step.text, encoding="utf-8")
        elif not step.line.startswith("make "):
            assert_shown(step.shown, run_line(step.line))
    return sum(isinstance(step, Command) for step in steps)


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
        for name in ("jobs", "mine"):  # modules of pages, which may have been edited
            sys.modules.pop(name, None)
        done = straggler(*arguments)
        assert done.code in CODES, done.out + done.err
        return done.out

    return run_here


def test_generated_pages_are_current() -> None:
    for name, text in pages().items():
        assert (DOCS / name).read_text(encoding="utf-8") == text, f"make docs writes {name} anew"


def test_the_help_explains_the_words_of_the_page(straggler: Straggler) -> None:
    page = (DOCS / "commands.md").read_text(encoding="utf-8")
    words = page.partition("## Words\n\n")[2].partition("\n\n")[0]
    assert textwrap.indent("\n" + textwrap.dedent(words), "  ") in straggler("--help").out


@pytest.mark.parametrize(
    "name",
    [name if name == "required" else pytest.param(name, marks=pytest.mark.long) for name in TABLES],
)
def test_the_guide_has_every_line_of_its_tables(name: str) -> None:
    header, rows = TABLES[name]
    known = set((DOCS / "slack-guide.md").read_text(encoding="utf-8").splitlines())
    absent = [
        line
        for each in rows()
        for line in markdown(header, [each]).splitlines()
        if line not in known
    ]
    assert not absent, "\n".join(absent)


@pytest.mark.long
@pytest.mark.parametrize("name", PAGES, ids=["README", "tutorial"])
def test_commands_print_what_the_page_shows(
    name: str, tmp_path: Path, here: Callable[[str], str]
) -> None:
    assert follow(name, tmp_path, here) > 2


@pytest.mark.long
@pytest.mark.timeout(1800)  # two busy cores
def test_the_main_job_prints_what_the_readme_shows(tmp_path: Path) -> None:
    steps = steps_of((ROOT / "README.md").read_text(encoding="utf-8"))
    (job,) = [each for each in steps if isinstance(each, Command) and "make" in each.line]
    assert_shown(job.shown, run(job.line, tmp_path))


def test_the_recording_shows_what_the_readme_shows() -> None:
    """A test of the judge of jobs compares the recording with what the check prints."""
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    picture = PICTURE.read_text(encoding="utf-8")
    checks = [each for each in steps_of(page) if isinstance(each, Command)]
    (check,) = [each for each in checks if each.line == first_check(page)[1]]
    drawn = html.unescape(re.sub(r"<[^>]*>", "", picture))
    words = [*check.line.split(), *" ".join(check.shown).replace(LEFT_OUT, "").split()]
    assert [word for word in words if word not in drawn] == []
    assert len(picture) < 20_000
    assert "url(http" not in picture.replace('"', "")


def test_the_job_of_the_readme_runs(
    spark: SparkSession, straggler: Straggler, tmp_path: Path
) -> None:
    """Run the job over a thousand rows; the page shows its ledger."""
    (tmp_path / "incoming").mkdir()
    start = datetime(2026, 3, 1, 8, tzinfo=UTC)
    rows = [
        (
            "ab"[n % 2],
            "" if n % 100 == 3 else start + timedelta(seconds=n),
            "?" if n % 50 == 7 else 1,
        )
        for n in range(1_000)
    ]
    text = "".join(f"{device},{at},{watts}\n" for device, at, watts in rows)
    (tmp_path / "incoming" / "1.csv").write_text(text, encoding="utf-8")
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    (job,) = (each.split("```")[0] for each in page.split("```python\n")[1:])
    names: dict[str, Any] = {}
    # Java, which is running already, looks for relative paths elsewhere.
    exec(job.replace('"incoming"', repr(str(tmp_path / "incoming"))), names)
    answers = names["query"].results()
    assert answers.columns[:5] == ["key", "window", "value", "coverage", "state"]
    found = answers.collect()
    assert {row.state for row in found} == {"exact", "incomplete"}
    assert max(row.value for row in found) == 5
    assert names["spark"] is spark
    _, head, shown = straggler("ledger", "power").out.rpartition("place  ")  # behind the answers
    assert textwrap.indent(head + shown, "    ") in page
