"""Pipelines as Systems: one workload in, one trace out."""

import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from model.vocabulary import System, Trace, Workload
from spark_impl.runtime.session import session

Runner = Callable[[SparkSession, Mapping[str, Workload], Path], dict[str, Trace]]
"""Runs workloads, told apart by names, in a session and a folder."""


def one_at_a_time(runner: Runner, room: str, master: str) -> System:
    """A System that uses the running session, or one of its own for each call."""

    def run(workload: Workload, /) -> Trace:
        workdir = Path(tempfile.mkdtemp(prefix=f"straggler-{room}-"))
        try:
            running = SparkSession.getActiveSession()
            if running is not None:
                return runner(running, {workload.name: workload}, workdir)[workload.name]
            with session(master) as spark:
                return runner(spark, {workload.name: workload}, workdir)[workload.name]
        finally:
            shutil.rmtree(workdir, ignore_errors=True)

    return run
