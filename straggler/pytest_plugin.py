"""The plugin of pytest that the package brings: a job on trial as a fixture.

Every test run of an environment loads this module, so that it imports nothing else of ours.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from straggler.jobs.report import JobReport

SESSIONS = ("spark", "spark_session")
"""Fixtures of a Spark session that tests of users often have."""


def pytest_configure(config: pytest.Config) -> None:
    """Add the marker ``straggler_job``."""
    config.addinivalue_line(
        "markers",
        "straggler_job(schema, event_time, ...): arguments of straggler.check_job for the fixture"
        " straggler_job",
    )


@pytest.fixture
def straggler_job(request: pytest.FixtureRequest) -> "Callable[..., JobReport]":
    """Return ``straggler.check_job`` with the arguments of the markers ``straggler_job``.

    An argument of the call goes before that of a marker, and the marker of a test before that of
    its class or module. The session is that of a fixture ``spark`` or ``spark_session``, if there
    is one.
    """
    marked: dict[str, Any] = {}
    for mark in request.node.iter_markers("straggler_job"):  # the closest one first
        if mark.args or {"job", "spark"} & mark.kwargs.keys():
            sentence = "the marker straggler_job takes keyword arguments alone, no job and no spark"
            pytest.fail(sentence, pytrace=False)
        marked = {**mark.kwargs, **marked}

    def check(job: Callable[..., Any], spark: Any = None, **asked: Any) -> "JobReport":
        __tracebackhide__ = True  # pytest shows the line of the caller
        from straggler import check_job

        return check_job(job, spark or _session(request), **{**marked, **asked})

    return check


def _session(request: pytest.FixtureRequest) -> Any:
    """Return the session of a fixture, and ``None`` if there is no such fixture."""
    for name in SESSIONS:
        try:
            return request.getfixturevalue(name)
        except pytest.FixtureLookupError as error:
            if error.argname != name:  # which a fixture of the session lacks
                raise
    return None
