"""A server on this machine that speaks S3: moto, in a process of its own.

Credentials are in the environment of this process while the server runs. Python workers of a
session that was started before get them from :func:`tell_workers`.
"""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_impl.runtime.storage import Location, locate

ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "tests",
    "AWS_SECRET_ACCESS_KEY": "tests",
    "AWS_EC2_METADATA_DISABLED": "true",
}
PATIENCE_S = 60


def find_program() -> str | None:
    """Return the program of the server, if it is installed beside this Python or on the PATH."""
    beside = str(Path(sys.executable).parent)
    return shutil.which("moto_server", path=os.pathsep.join([beside, os.environ.get("PATH", "")]))


@contextmanager
def running(program: str) -> Iterator[Location]:
    """Start a server on the loopback interface; yield a bucket in it."""
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        port = chosen.getsockname()[1]
    command, quiet = [program, "-H", "127.0.0.1", "-p", str(port)], subprocess.DEVNULL
    with (
        pytest.MonkeyPatch.context() as patch,
        subprocess.Popen(command, stdout=quiet, stderr=quiet) as server,
    ):
        for name, text in ENVIRONMENT.items():
            patch.setenv(name, text)
        try:
            _wait_for(server, port)
            where = f"endpoint_override=127.0.0.1:{port}&scheme=http&region=us-east-1"
            bucket = locate(f"s3://tests?{where}&allow_bucket_creation=true")
            bucket.make()
            yield bucket
        finally:
            server.terminate()


def _wait_for(server: "subprocess.Popen[bytes]", port: int) -> None:
    ends_s = time.monotonic() + PATIENCE_S
    while server.poll() is None and time.monotonic() < ends_s:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            time.sleep(0.05)
        else:
            return
    msg = "the server for S3 does not start"
    raise RuntimeError(msg)


def tell_workers(spark: SparkSession) -> None:
    """Give the credentials to Python workers of a running session."""
    spark.sparkContext.environment.update(ENVIRONMENT)
