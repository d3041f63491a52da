"""Bugs planted in the Spark side are caught by the promises alone, on Spark's own traces.

A copy of the packages with one bug a promise runs ``properties/test_promises.py`` in a process of
its own. Comparisons with the simulation, and of each route, are switched off: they notice anything.
That process writes the claims that break on Spark's traces to a file, for the record of
:mod:`tests.harness.broken_claims`.
"""

import json
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from model.grouping.balance_claims import BOUNDS
from model.grouping.claims import CLAIMS as CLAIMS_OF_GROUPING
from model.join.claims import CLAIMS as CLAIMS_OF_JOIN
from model.slack.claims import CLAIMS as CLAIMS_OF_SLACK
from model.windows.exactness_claims import _CHECKS
from tests.harness.broken_claims import note

ROOT = Path(__file__).resolve().parents[2]
PROMISES = ROOT / "properties/test_promises.py"
PLUGIN = """
import json
import pathlib
import time

import pytest

import spark_impl  # The copy: pytest would find that of the checkout first.

BROKEN = []  # room, claim, test, and seconds since the test began
running = []


def pytest_collection_finish():
    from properties import test_promises
    from properties import chain_runs
    from properties import packs as cluster_packs
    from tests.harness import broken_claims

    broken_claims.watch(note)
    test_promises.assert_same = lambda seen: None
    test_promises.wrong_routes = lambda router, steps: []
    test_promises.list_low_coverage = noting(test_promises.list_low_coverage)
    test_promises.run_packs = run_once(test_promises.run_packs)
    test_promises.run_chain_pack = run_once(test_promises.run_chain_pack)
    cluster_packs.ClusterRun.fail = fail
    chain_runs.ChainSeen.differences = lambda seen: []
    chain_runs.ChainSeen.fail = fail_chain


def pytest_runtest_call(item):
    running[:] = item.name, time.perf_counter()


def note(room, claim):
    if running:
        test, began_s = running
        BROKEN.append((room, claim, test, time.perf_counter() - began_s))


def pytest_sessionfinish():
    pathlib.Path("broken.json").write_text(json.dumps(BROKEN), encoding="utf-8")


def run_once(run_packs):
    # Hypothesis runs a failing example twice, and Spark would take as long for it again.
    last = [None, None]

    def run(spark, *packs, kills=0):
        if last[0] != packs:
            last[:] = packs, run_packs(spark, *packs, kills=kills)
        return last[1]

    return run


def noting(list_low_coverage):
    from straggler.rooms import find_room

    def found(workload, trace):
        sentences = list_low_coverage(workload, trace)
        if sentences:
            find_room("slack").check(workload, trace)  # For the record, as below.
        return sentences

    return found


def fail_chain(seen, sentences):
    pytest.fail(" ".join(sentences), pytrace=False)


def fail(seen, sentences, *_rest):
    seen.room.check(seen.run.workload, seen.trace)  # For the record: an oracle names no claim.
    pytest.fail(sentences[0], pytrace=False)
"""


class Bug(NamedTuple):
    """A planted bug: a changed piece of a file of ``spark_impl``, and the test that then fails."""

    name: str
    test: str
    said: str
    """Text that the failing test prints."""
    file: str
    right: str
    wrong: str
    also: tuple[str, str] = ("", "")
    """Another piece of the file, and what it becomes."""


JOIN = "test_every_pair_is_joined_exactly_once"
IMBALANCE = "test_imbalance_does_not_grow_with_instances"
COVERAGE = "test_first_answers_contain_the_requested_share"
EXACTNESS = "test_every_answer_ends_exact"
EXACT = {
    *_CHECKS,
    "corrections do not wait",
    "delay and value are compared as they came",
}
CLAIMS: Mapping[str, Collection[str]] = {
    JOIN: CLAIMS_OF_JOIN.guards,
    IMBALANCE: {*CLAIMS_OF_GROUPING.guards, *BOUNDS.guards},
    COVERAGE: set(CLAIMS_OF_SLACK.guards).difference(EXACT),
    EXACTNESS: EXACT,
}
"""Claims that the bug of a promise is recorded for: two bugs of one room break different ones."""

BUGS = (
    Bug(
        "pairs lie up to two windows apart",
        JOIN,
        "no pair that is no result",
        "join/side.py",
        "self.window_us = config.window_us",
        "self.window_us = 2 * config.window_us",
    ),
    Bug(
        "some tuples go to the last instance",
        IMBALANCE,
        "tuples above",
        "grouping/router.py",
        '    found, state = look_up("policy", config.policy, _WAYS)(job)\n',
        '    found, state = look_up("policy", config.policy, _WAYS)(job)\n'
        "    n = config.instances\n"
        "    found[:: round(n / (0.02 * np.log2(n)))] = n - 1\n",
    ),
    Bug(
        "half of the coverage is required",
        COVERAGE,
        "windows of task",
        "slack/requirement.py",
        "return _share(total, config.lambda_thr)",
        "return _share(total, config.lambda_thr / 2)",
    ),
    Bug(
        "the first answer is the final one",
        EXACTNESS,
        "final answer",
        "windows/answers.py",
        "latest = F.max_by(",
        "latest = F.min_by(",
    ),
)
MORE_BUGS = (
    Bug(
        "copies are met once more",
        JOIN,
        "twice",
        "join/worker.py",
        "np.repeat([block.seen for block in blocks], sizes)",
        "np.repeat([0 for block in blocks], sizes)",
    ),
    Bug(
        "a light key has one candidate",
        IMBALANCE,
        "instance",
        "grouping/router.py",
        "twos = sets.light[:, 0].copy(), sets.light[:, -1].copy()",
        "twos = sets.light[:, 0].copy(), sets.light[:, 0].copy()",
    ),
    Bug(
        "the slack is 0",
        COVERAGE,
        "too many are short",
        "slack/control_laws.py",
        "factor = min(max(alpha, 0.0), 1.0)",
        "factor = 0.0",
    ),
    Bug(
        "a flush corrects nothing",
        EXACTNESS,
        "final answer",
        "windows/correction.py",
        'return "flush"',
        'return ""',
    ),
)

YET_MORE_BUGS = (
    Bug(
        "blocks that are on their way meet nobody",
        JOIN,
        "no pair lost",
        "join/worker.py",
        "meets_copies = lane.stream == R",
        "meets_copies = False",
    ),
    Bug(
        "the most load attracts",
        IMBALANCE,
        "",
        "grouping/router.py",
        "elif loads[two] < loads[one]:",
        "elif loads[two] > loads[one]:",
    ),
    Bug(
        "the slack is half as long",
        COVERAGE,
        "too many are short",
        "slack/control_laws.py",
        "factor = min(max(alpha, 0.0), 1.0)",
        "factor = alpha / 2",
    ),
    Bug(
        "pairs of earlier micro-batches are never corrected",
        EXACTNESS,
        "final answer",
        "windows/correction.py",
        'before = store.read("pending", batch - 1)',
        'before = store.read("pending", batch - 1).slice(0, 0)',
    ),
)

BUG_OF_SCALE = Bug(
    "event times that span more than 72 minutes wrap",
    EXACTNESS,
    "has lost rows",
    "windows/blocks.py",
    "elif int(numbers.max()) - int(numbers.min()) < 1 << 32:",
    "elif not int(numbers.max()) - int(numbers.min()) < 1 << 32:",
)


JOIN_BUGS = (
    Bug(
        "the first of the copies on their way meets nobody",
        JOIN,
        "no pair lost",
        "join/side.py",
        "good |= number > seen[one]",
        "good |= number > seen[one] + 1",
    ),
    Bug(
        "an epoch that was killed counts as well",
        JOIN,
        "no pair twice",
        "join/store.py",
        "found += self.folder(each.epoch, each.attempt).children("
        r'rf"{table}(-\d+)?\.\w+")',
        'for attempt in (self.root / "epochs" / str(each.epoch)).children():\n'
        + 24 * " "
        + r'found += attempt.children(rf"{table}(-\d+)?\.\w+")',
        ("                    attempt.remove()", "                    pass"),
    ),
    Bug(
        "an acknowledgement forgets the last block sent",
        JOIN,
        "behaviour of the protocol",
        "join/worker.py",
        "BlockAck(lane.stream, block.number, other.sent, size)",
        "BlockAck(lane.stream, block.number, max(0, other.sent - 1), size)",
    ),
)
"""Bugs of a chain's exchange, each alone."""


@pytest.mark.timeout(1_200)
@pytest.mark.parametrize(
    "bugs",
    [
        pytest.param(BUGS, id="one each"),
        pytest.param(MORE_BUGS, id="more", marks=pytest.mark.long),
        pytest.param(YET_MORE_BUGS, id="yet more", marks=pytest.mark.long),
        *(pytest.param((bug,), id=bug.name) for bug in JOIN_BUGS),
        pytest.param((BUG_OF_SCALE,), id="of scale", marks=pytest.mark.long),
    ],
)
def test_each_promise_is_broken_by_a_bug(tmp_path: Path, bugs: tuple[Bug, ...]) -> None:
    ignored = shutil.ignore_patterns("__pycache__")
    for package in ("model", "spark_impl"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=ignored)
    for bug in bugs:
        path = tmp_path / "spark_impl" / bug.file
        text = path.read_text(encoding="utf-8")
        assert text.count(bug.right) == 1, f"{bug.right!r} is not there once"
        text = text.replace(bug.right, bug.wrong)
        path.write_text(text.replace(*bug.also) if bug.also[0] else text, encoding="utf-8")
    failures, printed = failed_promises(tmp_path, [bug.test for bug in bugs])
    for bug in bugs:
        assert bug.said in failures.get(bug.test, "nothing"), f"{bug} is not noticed in\n{printed}"
    for room, claim, test, seconds in json.loads((tmp_path / "broken.json").read_text("utf-8")):
        for bug in bugs:
            if bug.test == test and claim in CLAIMS[test]:
                note(room, claim, seconds, bug.name)


def failed_promises(folder: Path, tests: Sequence[str]) -> tuple[dict[str, str], str]:
    """Run some of the promises with the packages in a folder.

    Return what the failing ones say, and all that was printed. A run that is stopped, or that dies,
    fails the test with what it has printed until then.
    """
    (folder / "planted.py").write_text(PLUGIN, encoding="utf-8")
    report, output = folder / "report.xml", folder / "output.txt"
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
    with output.open("wb") as out, suppress(subprocess.TimeoutExpired):
        subprocess.run(
            [*command, "-c", ROOT / "pyproject.toml", *(f"{PROMISES}::{test}" for test in tests)],
            cwd=folder,
            env={
                **os.environ,
                "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}",
            },  # an installed copy is last
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
