"""Fixtures of all tests: profiles, seed, the system on trial, and one Spark session."""

import os
import random
from collections.abc import Generator, Iterator
from typing import Any

import pytest
from hypothesis import settings
from pyspark.sql import SparkSession

from model.vocabulary import System
from straggler.judging.systems import load_system
from tests.harness import failed_tasks, profiles
from tests.harness.background_kills import waits

profiles.register()
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", profiles.DEFAULT))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--system``, ``--kinds``, ``--long``, ``--cluster`` and ``--master``."""
    parser.addoption(
        "--system",
        metavar="MODULE:FACTORY",
        help="judge this implementation instead of ours, in tests that take a system",
    )
    parser.addoption(
        "--kinds",
        metavar="KIND,...",
        help="kinds of steps to compare, for a --system that does not record all (all)",
    )
    parser.addoption("--long", action="store_true", help="run tests that are marked long as well")
    parser.addoption(
        "--cluster",
        action="store_true",
        help="run tests on several hosts, which need root, as well",
    )
    parser.addoption("--master", metavar="URL", help="run Spark on this master (a local one)")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Choose the seed before Hypothesis reads it; only a nightly run is random."""
    config.addinivalue_line("markers", failed_tasks.DESCRIPTION)
    profile = config.getoption("--hypothesis-profile") or settings.get_current_profile_name()
    if config.getoption("--hypothesis-seed") is None and profile != "ci":  # ci needs no seed
        drawn = random.SystemRandom().randrange(2**32) if profile == "nightly" else 0
        config.option.hypothesis_seed = str(drawn)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Return a scheduler for ``--dist loadscope`` that lets Spark wait while other tests run."""
    if config.getoption("dist") != "loadscope":
        return None
    from tests.harness.xdist_scheduler import SparkAside

    return SparkAside(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out marked tests; move tests of killed queries to the end, when these have finished."""
    for name in ("long", "cluster"):
        if not config.getoption(f"--{name}"):
            marked = [item for item in items if item.get_closest_marker(name)]
            config.hook.pytest_deselected(items=marked)
            items[:] = [item for item in items if not item.get_closest_marker(name)]
    items.sort(key=waits)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Fail a test on Spark if a task failed that it does not expect."""
    return (yield from failed_tasks.watch(item))


def pytest_report_header(config: pytest.Config) -> str:
    """Return the options that repeat this run."""
    return (
        f"straggler: --hypothesis-profile={settings.get_current_profile_name()}"
        f" --hypothesis-seed={_seed(config)}"
    )


def _seed(config: pytest.Config) -> int:
    return int(config.getoption("--hypothesis-seed") or 0)


@pytest.fixture(scope="session")
def seed(pytestconfig: pytest.Config) -> int:
    """Return the seed of everything that is generated outside Hypothesis."""
    return _seed(pytestconfig)


@pytest.fixture(scope="session")
def foreign_system(pytestconfig: pytest.Config) -> System | None:
    """Return the system that ``--system`` names, if it is given."""
    reference = pytestconfig.getoption("--system")
    return None if reference is None else load_system(reference)


@pytest.fixture(scope="session")
def spark(pytestconfig: pytest.Config) -> Iterator[SparkSession]:
    """Start one session for all tests of a process, when the first test needs it.

    The session has slots for a chain of eight workers, and a task may fail once, in tests that are
    marked ``fails_tasks``. Its Python processes are forks, which start at once. With ``--master``
    it is a session on that master.
    """
    from spark_impl.runtime.session import session
    from tests.harness.python_forks import forking

    master = pytestconfig.getoption("--master")
    if master is not None:
        with session(master, **failed_tasks.COUNTING) as running:
            yield running
        return
    counting = failed_tasks.COUNTING
    with forking() as launcher, session("local[8,2]", **counting) as running:
        running.sparkContext.pythonExec = str(launcher)
        yield running
