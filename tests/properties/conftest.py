"""Fixtures of property tests: the system on trial, and a count of the cases Spark has reached."""

from collections import Counter
from collections.abc import Generator
from importlib import import_module

import pytest
from hypothesis import settings

from model.vocabulary import System
from tests.harness.profiles import DEFAULT
from tests.harness.reached_cases import Reached

REACHED = "reached"
MISSING = "missing"


@pytest.fixture(scope="module")
def system(request: pytest.FixtureRequest, foreign_system: System | None) -> System:
    """Return the system on trial: that of ``--system``, or the model of the test's room.

    The model of ``join`` is its chain, because the oracle records no steps of the protocol.
    """
    model: System = import_module(f"model.{request.path.parent.name}").make_system()
    return foreign_system or model


@pytest.fixture(scope="module")
def reached() -> Reached:
    """Return the counter of the cases that occur on Spark during one test."""
    return Reached()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Fail a test marked ``reaches`` if one of its cases did not occur.

    Profile ``dev`` has few clusters; there the missing cases are only reported.
    """
    marker = item.get_closest_marker("reaches")
    counter: Reached | None = getattr(item, "funcargs", {}).get("reached")
    if marker is None or counter is None:
        return (yield)
    counter.counts.clear()
    result = yield
    missing = counter.missing(marker.args)
    if missing and settings.get_current_profile_name() != DEFAULT:
        pytest.fail(f"undetermined: on Spark there were no {', '.join(missing)}", pytrace=False)
    item.user_properties += [(REACHED, dict(counter.counts)), (MISSING, missing)]
    return result


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how often each case occurred on Spark."""
    counts = Counter[str]()
    for report in terminalreporter.getreports("passed"):
        properties = dict(report.user_properties)
        counts.update(properties.get(REACHED, {}))
        if properties.get(MISSING):
            name, none = report.nodeid.split("::")[-1], ", ".join(properties[MISSING])
            terminalreporter.write_line(f"{name}: there were no {none} in so few clusters")
    if counts:
        terminalreporter.section("what Spark saw")
        for name, count in counts.items():
            terminalreporter.write_line(f"{count:>12,} {name}")
