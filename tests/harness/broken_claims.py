"""A pytest plugin: records which test breaks which claim, and after how many seconds.

``--record-broken FILE`` writes, for every claim of every room, the tests of ``tests/quality`` that
broke it. Of one file of tests the quickest test counts. What breaks in a process of its own, such
as a pytest that a test starts, is not seen.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping
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
    seconds: float
    """Time from the start of the test until the verdict (s)."""


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


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--record-broken``."""
    parser.addoption("--record-broken", type=Path, help="write the claims that each test breaks")


def pytest_configure(config: pytest.Config) -> None:
    """Start to record."""
    if config.option.record_broken:
        config.pluginmanager.register(_Recorder(config.option.record_broken))


class _Recorder:
    """Collects the broken claims of each test of ``tests/quality``."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._test = ""
        self._started_s = 0.0
        self._found: list[Broken] = []
        self._passed: set[str] = set()
        rooms = {id(each): room for room, sets in claim_sets().items() for each in sets}
        ClaimSet.judge = self._noting(ClaimSet.judge, rooms)  # type: ignore[method-assign]  # verdicts are seen nowhere else

    def _noting(
        self, judge: Callable[..., Judgement], rooms: Mapping[int, str]
    ) -> Callable[..., Judgement]:
        def noted(claims: ClaimSet[Any], *given: Any, **named: Any) -> Judgement:
            judgement = judge(claims, *given, **named)
            if self._test and id(claims) in rooms:
                seconds = time.perf_counter() - self._started_s
                self._found += [
                    Broken(rooms[id(claims)], verdict.claim, self._test, seconds)
                    for verdict in judgement.verdicts
                    if verdict.outcome is Outcome.BROKEN
                ]
            return judgement

        return noted

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
        if report.when == "call" and report.passed:
            self._passed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """Write the file."""
        found = [each for each in self._found if each.test in self._passed]
        write(self._target, found)


def write(path: Path, found: list[Broken]) -> None:
    """Write the quickest test of each file of tests, a line each, for every broken claim."""
    quickest: dict[tuple[str, ...], Broken] = {}
    for each in found:
        rounded = each._replace(seconds=round(each.seconds, 1))
        place = (each.room, each.claim, each.test.partition("::")[0])
        other = quickest.setdefault(place, rounded)
        quickest[place] = min(other, rounded, key=lambda known: (known.seconds, known.test))
    lines = [json.dumps(each._asdict(), ensure_ascii=False) for each in sorted(quickest.values())]
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


def read(path: Path) -> list[Broken]:
    """Read the tests that broke claims."""
    return [Broken(**each) for each in json.loads(path.read_text(encoding="utf-8"))]
