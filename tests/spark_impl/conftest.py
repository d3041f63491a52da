"""Folders on each kind of file system that a query writes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_impl.runtime.storage import Location, locate
from tests.harness import s3_server


@pytest.fixture(scope="session")
def bucket() -> Iterator[Location]:
    """Yield a bucket of a server that speaks S3."""
    program = s3_server.find_program()
    if program is None:
        pytest.skip("there is no moto_server; to test S3: pip install 'moto[server]'")
    with s3_server.running(program) as found:
        yield found


@pytest.fixture(params=["local", pytest.param("s3", marks=pytest.mark.long)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    """Return an empty folder on each kind of file system."""
    if request.param == "local":
        return locate(tmp_path)
    found: Location = request.getfixturevalue("bucket") / tmp_path.name
    return found
