"""A bucket, for queries that write to S3."""

from collections.abc import Iterator

import pytest

from spark_impl.runtime.storage import Location
from tests.harness import s3_server


@pytest.fixture(scope="session")
def bucket() -> Iterator[Location]:
    """Yield a bucket of a server that speaks S3."""
    program = s3_server.find_program()
    if program is None:
        pytest.skip("there is no moto_server; to test S3: pip install 'moto[server]'")
    with s3_server.running(program) as found:
        yield found
