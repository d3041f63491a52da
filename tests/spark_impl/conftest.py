"""One Spark session for all tests of this folder."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from spark_impl.session import session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    with session("local[2]") as running:
        yield running
