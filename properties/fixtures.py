"""The plugin of pytest for our tests: profiles, seed, and one Spark session.

It is loaded once, by the ``conftest.py`` of a checkout or by that of an installed ``properties``.
"""

import os
import random
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import core, settings
from pyspark.sql import SparkSession

from properties import failed_tasks, profiles
from properties.promised import REACHED

profiles.register()
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", profiles.DEFAULT))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--long`` and ``--master``."""
    parser.addoption("--long", action="store_true", help="run tests that are marked long as well")
    parser.addoption("--master", metavar="URL", help="run Spark on this master (a local one)")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Take one process for the promises on Spark and one for the others, if xdist is installed.

    Only the whole folder is divided. What is asked for by ``-n`` stays: ``-n 0`` is one process.
    """
    asked = config.option
    is_all = [Path(each).resolve() for each in config.args] == [Path(__file__).parent]
    if not is_all or hasattr(config, "workerinput") or not config.pluginmanager.hasplugin("xdist"):
        return
    if asked.numprocesses is None and not asked.usepdb and (os.cpu_count() or 1) > 1:
        asked.numprocesses, asked.dist, asked.loadscopereorder = 2, "loadfile", False


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Choose the seed; only a nightly run is random."""
    config.addinivalue_line("markers", failed_tasks.DESCRIPTION)
    profile = config.getoption("--hypothesis-profile") or settings.get_current_profile_name()
    if config.getoption("--hypothesis-seed") is None and profile != "ci":  # ci needs no seed
        drawn = random.SystemRandom().randrange(2**32) if profile == "nightly" else 0
        config.option.hypothesis_seed = str(drawn)
    # With --pyargs pytest finds this plugin after Hypothesis has read its options.
    settings.load_profile(profile)
    if (chosen := config.getoption("--hypothesis-seed")) is not None:
        core.global_force_seed = int(chosen)  # type: ignore[assignment]  # None at first


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Fail a test on Spark if a task failed that it does not expect."""
    return (yield from failed_tasks.watch(item))


def pytest_report_header(config: pytest.Config) -> str:
    """Return the options that repeat this run."""
    return f"straggler: {_options(config)}"


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print, for each property, how often its cases occurred, and the options of this run."""
    found = {
        report.nodeid.rpartition("/")[-1]: Counter[str](dict(report.user_properties)[REACHED])
        for outcome in ("passed", "failed")
        for report in terminalreporter.getreports(outcome)
        if REACHED in dict(report.user_properties)
    }
    if found:
        terminalreporter.section("what the properties saw")
        terminalreporter.write_line(_options(config))  # with -q there is no header
    for name, counts in found.items():
        seen = ", ".join(f"{count:,} {case}" for case, count in counts.items())
        terminalreporter.write_line(f"{name}: {seen}")


def _options(config: pytest.Config) -> str:
    profile = settings.get_current_profile_name()
    return f"--hypothesis-profile={profile} --hypothesis-seed={_seed(config)}"


def _seed(config: pytest.Config) -> int:
    return int(config.getoption("--hypothesis-seed") or 0)


@pytest.fixture(scope="session")
def seed(pytestconfig: pytest.Config) -> int:
    """Return the seed of everything that is generated outside Hypothesis."""
    return _seed(pytestconfig)


@pytest.fixture(scope="session")
def spark(pytestconfig: pytest.Config) -> Iterator[SparkSession]:
    """Start one session for all tests of a process, when the first test needs it.

    The session has slots for a chain of eight workers, and a task may fail once, in tests that are
    marked ``fails_tasks``. Its Python processes are forks, which start at once. With ``--master``
    it is a session on that master.
    """
    from spark_impl.runtime.session import session
    from straggler.forks import forking

    master = pytestconfig.getoption("--master")
    if master is not None:
        with session(master, **failed_tasks.COUNTING) as running:
            yield running
        return
    with forking() as launcher, session("local[8,2]", **failed_tasks.COUNTING) as running:
        running.sparkContext.pythonExec = str(launcher)
        yield running
