"""A pytest plugin: records which functions of ours each test calls, and runs chosen tests in order.

``--record-calls FILE`` writes, for every test that passes, its seconds and the functions that it
calls in its own process. What runs in other processes, such as Spark's, is not seen. ``--tests-of
FILE`` runs the tests that a JSON file lists, or all of a listed test file, in that order, and no
others. Counterexamples are not shrunk then: only whether a test fails is asked.
"""

import json
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import CodeType, FrameType

import pytest
from hypothesis import Phase, settings

PACKAGES = ("model", "sim", "spark_impl")
ALL_TESTS = ""
"""Name of the part of a test file that every test of the file depends on: its fixtures."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--record-calls`` and ``--tests-of``."""
    parser.addoption("--record-calls", type=Path, help="write the functions that each test calls")
    parser.addoption("--tests-of", type=Path, help="run the tests of a JSON file, in its order")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Start to record, or let failing properties end at once."""
    if config.option.record_calls:
        config.pluginmanager.register(_Recorder(config.rootpath, config.option.record_calls))
    if config.option.tests_of:
        name = settings.get_current_profile_name()
        phases = (Phase.explicit, Phase.generate)
        settings.register_profile(name, settings.get_profile(name), phases=phases)
        settings.load_profile(name)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the listed tests, in the order of the list."""
    if config.option.tests_of:
        listed = json.loads(config.option.tests_of.read_text(encoding="utf-8"))
        place = {name: number for number, name in enumerate(listed)}
        chosen = [(_place(each.nodeid, place), each) for each in items]
        items[:] = [
            each for number, each in sorted(chosen, key=lambda pair: pair[0]) if number < len(place)
        ]


def _place(test: str, places: Mapping[str, int]) -> int:
    """Return the place of a test or its file in the list; the last one if it is not there."""
    return places.get(test, places.get(test.partition("::")[0], len(places)))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Refuse packages that do not come from the tree whose tests run."""
    for name in PACKAGES if session.config.option.tests_of else ():
        file = getattr(sys.modules.get(name), "__file__", None)
        if file and not Path(file).is_relative_to(session.config.rootpath):
            pytest.exit(
                f"{name} was imported from {file}", returncode=pytest.ExitCode.INTERNAL_ERROR
            )


class _Recorder:
    """Collects the calls of each test, and those of the fixtures of its file."""

    def __init__(self, root: Path, target: Path) -> None:
        self._root = root
        self._target = target
        self._seen: set[CodeType] = set()
        self._called: dict[str, set[CodeType]] = {}
        self._seconds: dict[str, float] = {}
        self._failed: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        """Record what fixtures call: all tests of the file may depend on it."""
        return (yield from self._record(f"{item.location[0]}::{ALL_TESTS}"))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Record what the test calls."""
        return (yield from self._record(item.nodeid))

    def _record(self, part: str) -> Iterator[None]:
        self._seen = self._called.setdefault(part, set())
        threading.settrace(self._trace)
        sys.settrace(self._trace)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)

    def _trace(self, frame: FrameType, _event: str, _argument: object) -> None:
        self._seen.add(frame.f_code)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the time of each test, and which failed or were skipped."""
        self._seconds[report.nodeid] = self._seconds.get(report.nodeid, 0.0) + report.duration
        if report.outcome != "passed":
            self._failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """Write the file."""
        found = {
            test: [round(seconds, 3), sorted(self._names(test))]
            for test, seconds in self._seconds.items()
            if test not in self._failed
        }
        self._target.write_text(json.dumps(found, indent=0), encoding="utf-8")

    def _names(self, test: str) -> set[str]:
        """Return the functions that a test depends on, as ``path:first line``."""
        codes = self._called[test] | self._called[f"{test.partition('::')[0]}::{ALL_TESTS}"]
        return {
            f"{path.relative_to(self._root).as_posix()}:{code.co_firstlineno}"
            for code in codes
            if (path := Path(code.co_filename)).is_relative_to(self._root)
            and path.relative_to(self._root).parts[0] in PACKAGES
        }
