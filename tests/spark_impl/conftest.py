"""Folders on each kind of file system on which tables and histories are written."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_impl.runtime.storage import Location, locate
from tests.harness import s3_server


@pytest.fixture(params=["local", pytest.param("s3", marks=pytest.mark.long)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Location]:
    """Yield an empty folder on each kind of file system."""
    if request.param == "local":
        yield locate(tmp_path)
        return
    program = s3_server.find_program()
    if program is None:
        pytest.skip("there is no moto_server; to test S3: pip install 'moto[server]'")
    with s3_server.running(program) as bucket:
        yield bucket / tmp_path.name
