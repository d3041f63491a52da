"""A pytest plugin: records which planted bug breaks which claim, and after how many seconds.

``--record-broken FILE`` writes, for every claim of every room, the tests of ``tests/quality`` that
broke it, with the names of their planted bugs. The tests that ran replace what the file says about
them; everything else stays, so that a record is made in parts. What breaks in a process of its own
is seen only if the test passes it on (:func:`note`).
"""

import json
import time
from collections.abc import Callable, Collection, Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any, NamedTuple

import pytest

import model
from model.checking.claims import ClaimSet, Judgement, Outcome

TESTS = "tests/quality/"
"""Folder of the tests that plant bugs."""


class Claimed(NamedTuple):
    """A claim and the room whose traces it judges."""

    room: str
    claim: str


class Broken(NamedTuple):
    """A test that broke a claim."""

    room: str
    claim: str
    test: str
    """Name of the test with its parameters: the quickest, if it has several."""
    seconds: float
    """Time from the start of the test until the verdict (s)."""
    bugs: tuple[str, ...] = ()
    """Names of the planted bugs of this test that broke the claim, the quickest first."""

    @property
    def function(self) -> str:
        """Name of the test without its parameters."""
        return self.test.partition("[")[0]

    @property
    def file(self) -> str:
        """Name of the file of the test, in the folder of the tests that plant bugs."""
        return self.test.partition("::")[0].removeprefix(TESTS)


def name_bug(test: str) -> str:
    """Return the name of a planted bug: the parameters of its test, or else the test's own name."""
    name, _, parameters = test.partition("::")[2].partition("[")
    return parameters.removesuffix("]") or name.removeprefix("test_").replace("_", " ")


def claim_sets() -> dict[str, list[ClaimSet[Any]]]:
    """Return the sets of claims of each room, by its name."""
    found: dict[str, list[ClaimSet[Any]]] = {}
    for module in walk_packages(model.__path__, "model."):
        for each in vars(import_module(module.name)).values():
            own = found.setdefault(module.name.split(".")[1], [])
            if isinstance(each, ClaimSet) and not any(each is other for other in own):
                own.append(each)
    return {room: own for room, own in found.items() if own}


def all_claims() -> list[Claimed]:
    """Return every claim of every room, in order of declaration."""
    return [
        Claimed(room, claim.name)
        for room, sets in claim_sets().items()
        for each in sets
        for claim in each.claims
    ]


_RECORDERS: list["_Recorder"] = []
"""The recorder of this process, if there is one."""


def note(room: str, claim: str, seconds: float, bug: str) -> None:
    """Record a claim that a bug of the running test broke in a process of its own."""
    for recorder in _RECORDERS:
        recorder.note(room, claim, seconds, bug)


def watch(noted: Callable[[str, str], None]) -> None:
    """Call ``noted`` with the room and the name of every claim that is broken from now on."""
    rooms = {
        id(claim): room
        for room, sets in claim_sets().items()
        for each in sets
        for claim in each.claims
    }
    judge = ClaimSet.judge

    def watched(claims: ClaimSet[Any], *given: Any, **named: Any) -> Judgement:
        judgement = judge(claims, *given, **named)
        by_name = {claim.name: rooms.get(id(claim)) for claim in claims.claims}
        for verdict in judgement.verdicts:
            room = by_name[verdict.claim]
            if room is not None and verdict.outcome is Outcome.BROKEN:
                noted(room, verdict.claim)
        return judgement

    ClaimSet.judge = watched  # type: ignore[method-assign, assignment]  # verdicts are seen nowhere else


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--record-broken``."""
    parser.addoption("--record-broken", type=Path, help="write the claims that each test breaks")


def pytest_configure(config: pytest.Config) -> None:
    """Start to record."""
    if config.option.record_broken:
        recorder = _Recorder(config.option.record_broken)
        config.pluginmanager.register(recorder)
        _RECORDERS.append(recorder)
        watch(lambda room, claim: recorder.note(room, claim, recorder.seconds()))


class _Recorder:
    """Collects the broken claims of each test of ``tests/quality``."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._test = ""
        self._started_s = 0.0
        self._found: list[Broken] = []
        self._passed: set[str] = set()
        self._ran: set[str] = set()

    def seconds(self) -> float:
        """Return the time since the start of the running test (s)."""
        return time.perf_counter() - self._started_s

    def note(self, room: str, claim: str, seconds: float, bug: str = "") -> None:
        """Note that the running test broke a claim; its bug has the name of the test or its own."""
        if self._test:
            named = bug or name_bug(self._test)
            self._found.append(Broken(room, claim, self._test, seconds, (named,)))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Note the claims that break while the test runs."""
        self._test = item.nodeid if item.nodeid.startswith(TESTS) else ""
        self._started_s = time.perf_counter()
        try:
            return (yield)
        finally:
            self._test = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note which tests passed; what a failing test breaks was not planted."""
        if report.when == "call" and report.nodeid.startswith(TESTS):
            self._ran.add(report.nodeid.partition("[")[0])
            if report.passed:
                self._passed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """Write the file."""
        found = [each for each in self._found if each.test in self._passed]
        renew(self._target, self._ran, found)


def renew(path: Path, ran: Collection[str], found: list[Broken]) -> None:
    """Replace what a file says about the test functions that ran by what they found now."""
    known = read(path) if path.exists() else []
    write(path, [*(each for each in known if each.function not in ran), *found])


def write(path: Path, found: list[Broken]) -> None:
    """Write a line for every broken claim and test function: its quickest test, and its bugs."""
    places: dict[tuple[str, ...], list[Broken]] = {}
    for each in found:
        rounded = each._replace(seconds=round(each.seconds, 1))
        places.setdefault((each.room, each.claim, each.function), []).append(rounded)
    lines = [
        json.dumps(_merge(places[place])._asdict(), ensure_ascii=False) for place in sorted(places)
    ]
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


def _merge(found: list[Broken]) -> Broken:
    """Return the quickest of several tests of one function that broke a claim, with all bugs."""
    in_order = sorted(found, key=lambda each: (each.seconds, each.test))
    bugs = dict.fromkeys(bug for each in in_order for bug in each.bugs)
    return in_order[0]._replace(bugs=tuple(bugs))


def read(path: Path) -> list[Broken]:
    """Read the tests that broke claims."""
    found = [Broken(**each) for each in json.loads(path.read_text(encoding="utf-8"))]
    return [each._replace(bugs=tuple(each.bugs)) for each in found]
