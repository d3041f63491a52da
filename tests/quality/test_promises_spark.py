"""Bugs planted in the Spark side are caught by the promises alone, on Spark's own traces.

A copy of the packages with one bug a room runs ``properties/test_promises.py`` in a process of its
own. Comparisons with the simulation, and of each route, are switched off: they notice anything.
"""

import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = """
import pytest

import spark_impl  # The copy: pytest would find that of the checkout first.


def pytest_collection_finish():
    from properties import test_promises
    from tests.harness import cluster_packs

    test_promises.assert_same = lambda seen: None
    test_promises.list_wrong_routes = lambda workload, trace: []
    test_promises.run_packs = run_once(test_promises.run_packs)
    cluster_packs.ClusterRun.fail = fail


def run_once(run_packs):
    # Hypothesis runs a failing example twice, and Spark would take as long for it again.
    last = [None, None]

    def run(spark, *packs, kills=0):
        if last[0] != packs:
            last[:] = packs, run_packs(spark, *packs, kills=kills)
        return last[1]

    return run


def fail(_, sentences, *_rest):
    pytest.fail(sentences[0], pytrace=False)
"""


class Bug(NamedTuple):
    """A planted bug: a changed piece of a file of ``spark_impl``, and the test that then fails."""

    test: str
    said: str
    """Text that the failing test prints."""
    file: str
    right: str
    wrong: str


JOIN = "test_every_pair_is_joined_exactly_once"
IMBALANCE = "test_imbalance_does_not_grow_with_instances"
COVERAGE = "test_first_answers_contain_the_requested_share[sum]"
EXACTNESS = "test_every_answer_ends_exact"

BUGS = (
    Bug(
        JOIN,
        "no pair lost",
        "join/worker.py",
        "meets_copies = lane.stream == R",
        "meets_copies = False",
    ),
    Bug(
        IMBALANCE,
        "tuples above",
        "grouping/router.py",
        "    found, state = _OWN.get(config.policy, _least)(job)\n",
        "    found, state = _OWN.get(config.policy, _least)(job)\n"
        "    n = config.instances\n"
        "    found[:: round(n / (0.02 * np.log2(n)))] = 0\n",
    ),
    Bug(
        COVERAGE,
        "required coverage",
        "slack/requirement.py",
        "return _share(total, config.lambda_thr)",
        "return _share(total, config.lambda_thr / 2)",
    ),
    Bug(EXACTNESS, "final answer", "windows/query.py", "latest = F.max_by(", "latest = F.min_by("),
)
"""Pairs lost, growth by log n, half the coverage, first answers."""
MORE_BUGS = (
    Bug(
        JOIN,
        "twice",
        "join/worker.py",
        "np.repeat([block.seen for block in blocks], sizes)",
        "np.repeat([0 for block in blocks], sizes)",
    ),
    Bug(
        IMBALANCE,
        "instance",
        "grouping/router.py",
        "twos = sets.light[:, 0].copy(), sets.light[:, -1].copy()",
        "twos = sets.light[:, 0].copy(), sets.light[:, 0].copy()",
    ),
    Bug(
        COVERAGE,
        "slack follows alpha",
        "slack/control_laws.py",
        "factor = min(max(alpha, 0.0), 1.0)",
        "factor = 0.0",
    ),
    Bug(EXACTNESS, "final answer", "windows/correction.py", 'return "flush"', 'return ""'),
)
"""Pairs twice, by the key, no slack, nothing corrected at the end."""


@pytest.mark.timeout(1_200)
@pytest.mark.parametrize(
    "bugs",
    [pytest.param(BUGS, id="one each"), pytest.param(MORE_BUGS, id="more", marks=pytest.mark.long)],
)
def test_each_promise_is_broken_by_a_bug(tmp_path: Path, bugs: tuple[Bug, ...]) -> None:
    ignored = shutil.ignore_patterns("__pycache__")
    for package in ("model", "spark_impl"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=ignored)
    for bug in bugs:
        path = tmp_path / "spark_impl" / bug.file
        text = path.read_text(encoding="utf-8")
        assert text.count(bug.right) == 1, f"{bug.right!r} is not there once"
        path.write_text(text.replace(bug.right, bug.wrong), encoding="utf-8")
    failures = failed_promises(tmp_path)
    for bug in bugs:
        assert bug.said in failures.get(bug.test, "nothing"), (bug, failures.get(bug.test))


def failed_promises(folder: Path) -> dict[str, str]:
    """Run the four promises with the packages in a folder; return what the failing ones say."""
    (folder / "planted.py").write_text(PLUGIN, encoding="utf-8")
    report = folder / "report.xml"
    command: list[str | Path] = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "planted",
        "-p",
        "no:xdist",
        "--rootdir",
        ROOT,
    ]
    command += ["--hypothesis-profile=dev", "--hypothesis-seed=0", f"--junitxml={report}"]
    subprocess.run(
        [*command, "-c", ROOT / "pyproject.toml", ROOT / "properties/test_promises.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        check=False,
        timeout=900,
    )
    return {
        str(case.get("name")): str(failure.get("message"))
        for case in ET.parse(report).iter("testcase")
        for failure in case.iter("failure")
    }
