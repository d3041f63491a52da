"""Folders on file systems, and queries whose driver is killed while other tests run."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import TypeAlias

import pytest

from properties import profiles
from spark_impl.runtime.storage import Location, locate
from tests.harness import s3_server
from tests.harness.background_kills import (
    KILLED_CHAINS,
    KILLED_QUERIES,
    KILLED_SCRIPTS,
    KillPlan,
    Query,
    run_in_background,
)
from tests.harness.killed_queries import CHAINS, SCRIPTS, WINDOWS

Background: TypeAlias = Callable[[str], Future[list[Query]]]


@pytest.fixture(scope="session")
def bucket() -> Iterator[Location]:
    """Yield a bucket of a server that speaks S3."""
    program = s3_server.find_program()
    if program is None:
        pytest.skip("there is no moto_server; to test S3: pip install 'moto[server]'")
    with s3_server.running(program) as found:
        yield found


@pytest.fixture(params=["local", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    """Return an empty folder on each kind of file system."""
    if request.param == "local":
        return locate(tmp_path)
    found: Location = request.getfixturevalue("bucket") / tmp_path.name
    return found


@pytest.fixture(autouse=True)
def begun_with_spark(request: pytest.FixtureRequest) -> None:
    """Start killing with the first test that starts Spark, if this process runs all tests."""
    if "spark" in request.fixturenames:
        request.getfixturevalue("background")


@pytest.fixture(scope="session")
def background(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Background]:
    """Yield a function that returns the value of each fixture below."""
    # The option, not the fixture ``seed``: some tests here have parameters of that name.
    seed = int(request.config.getoption("--hypothesis-seed") or 0)
    kills = profiles.effort().kills
    plans = {
        KILLED_QUERIES: KillPlan(WINDOWS, seed, kills),
        KILLED_CHAINS: KillPlan(CHAINS, seed, kills // 2),
        KILLED_SCRIPTS: KillPlan(SCRIPTS, seed, max(1, kills // 4)),
    }
    yield from run_in_background(plans, request, tmp_path_factory)


@pytest.fixture(name=KILLED_QUERIES)
def killed_queries(background: Background) -> list[Query]:
    """Return queries of rooms ``slack`` and ``watermark`` whose driver was killed repeatedly."""
    return background(KILLED_QUERIES).result()


@pytest.fixture(name=KILLED_CHAINS)
def killed_chains(background: Background) -> list[Query]:
    """Return chains of room ``join`` whose driver was killed repeatedly."""
    return background(KILLED_CHAINS).result()


@pytest.fixture(name=KILLED_SCRIPTS)
def killed_scripts(background: Background) -> list[Query]:
    """Return queries of room ``script`` whose driver was killed repeatedly."""
    return background(KILLED_SCRIPTS).result()
