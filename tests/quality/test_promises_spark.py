"""The promises alone notice planted bugs on Spark's own traces.

``properties/test_promises.py`` runs in a process of its own, whose driver and workers have the
bugs of :mod:`tests.quality.promise_bugs`. All of it runs at night.
"""

import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path

import pytest

from tests.quality.promise_bugs import BUGS, NAMED

ROOT = Path(__file__).resolve().parents[2]
PROMISES = ROOT / "properties/test_promises.py"


def rounds() -> list[list[str]]:
    """Return the bugs of each run, one of a promise at most: the first that shows hides others."""
    of_promise: dict[str, list[str]] = {}
    for name, bug in BUGS.items():
        of_promise.setdefault(bug.test, []).append(name)
    return [[*filter(None, each)] for each in zip_longest(*of_promise.values())]


@pytest.mark.long
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("names", rounds(), ids=lambda names: names[0])
def test_each_promise_is_broken_by_a_bug(tmp_path: Path, names: Sequence[str]) -> None:
    failures, printed = failed_promises(tmp_path, names)
    for name in names:
        bug = BUGS[name]
        assert bug.said in failures.get(bug.test, "nothing"), f"{name} is not noticed in\n{printed}"


def failed_promises(folder: Path, names: Sequence[str]) -> tuple[dict[str, str], str]:
    """Run some of the promises with planted bugs.

    Return what the failing ones say, and all that was printed. A run that is stopped, or that dies,
    fails the test with what it has printed until then.
    """
    report, output = folder / "report.xml", folder / "output.txt"
    command: list[str | Path] = [sys.executable, "-m", "pytest", "-p", "no:xdist"]
    command += ["-p", "tests.quality.promise_bugs", "--rootdir", ROOT]
    command += ["--hypothesis-profile=dev", "--hypothesis-seed=0", f"--junitxml={report}"]
    tests = [f"{PROMISES}::{BUGS[name].test}" for name in names]
    with output.open("wb") as out, suppress(subprocess.TimeoutExpired):
        subprocess.run(
            [*command, "-c", ROOT / "pyproject.toml", *tests],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), NAMED: "\n".join(names)},
            stdout=out,
            stderr=subprocess.STDOUT,
            check=False,
            timeout=900,
        )
    printed = output.read_text(encoding="utf-8", errors="replace")
    assert report.exists(), f"the promises did not come to an end:\n{printed}"
    failures = {
        str(case.get("name")): str(failure.get("message"))
        for case in ET.parse(report).iter("testcase")
        for failure in case.iter("failure")
    }
    return failures, printed
