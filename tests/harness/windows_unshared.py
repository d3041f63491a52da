"""A query whose executors write to another folder than the one its driver reads.

``python -m tests.harness.windows_unshared FOLDER`` takes the folder of
:mod:`tests.harness.windows_driver`. The address of the store leads every process into its own
working directory. The driver prints why the query stopped, and its last complete micro-batch.
"""

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from model.vocabulary import ScriptConfig
from spark_impl.runtime.queries import QueryProblem
from spark_impl.runtime.session import session
from spark_impl.runtime.systems import CASE
from spark_impl.script import ScriptQuery
from tests.harness import windows_driver
from tests.harness.announcements import say
from tests.harness.windows_driver import AnnouncedQuery, workload_in

MASTER = "local-cluster[2,1,1024]"
STORE = "/proc/self/cwd/store"


def main(folder: Path) -> None:
    """Run the query in ``folder`` until it stops."""
    os.chdir(folder)
    with session(MASTER) as spark:
        query = opened(spark, folder)
        try:
            query.run_available()
        except QueryProblem as problem:
            say(f"stopped: {problem}")
        say(f"complete: {query.store.committed()}")
        say("done")


def opened(spark: SparkSession, folder: Path) -> ScriptQuery | AnnouncedQuery:
    """Open the query of the workload in ``folder``."""
    workload = workload_in(folder)
    if workload.room in windows_driver.PIPELINES:
        return windows_driver.opened(spark, folder, STORE)
    config = ScriptConfig.from_json(workload.config)
    history, checkpoint = folder / "history", folder / "checkpoint"
    return ScriptQuery(spark, config, history, STORE, [CASE], checkpoint=checkpoint)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
