"""What tests of promises share: cases that have to occur on Spark, and lines that count them."""

from collections import Counter
from collections.abc import Generator

import pytest

from properties.reached import Reached

PROPERTY = "reached"


@pytest.fixture(scope="module")
def reached() -> Reached:
    """Counter of the cases that occurred on Spark, in the test that runs."""
    return Reached()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Fail a test marked ``reaches`` if one of its cases did not occur."""
    marker = item.get_closest_marker("reaches")
    counter: Reached | None = getattr(item, "funcargs", {}).get("reached")
    if marker is None or counter is None:
        return (yield)
    counter.counts.clear()
    result = yield
    item.user_properties.append((PROPERTY, dict(counter.counts)))
    missing = counter.missing(marker.args)
    if missing:
        pytest.fail(f"undetermined: on Spark there were no {', '.join(missing)}", pytrace=False)
    return result


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what real Spark saw."""
    counts = Counter[str]()
    for report in terminalreporter.getreports("passed"):
        for name, value in report.user_properties:
            if name == PROPERTY:
                counts.update(value)
    if counts:
        terminalreporter.section("what Spark saw")
        for name, count in counts.items():
            terminalreporter.write_line(f"{count:>12,} {name}")
