"""A query of scripts whose executors write to another folder than the one its driver reads.

``python -m tests.harness.script_apart FOLDER`` takes the folder of
:mod:`tests.harness.windows_driver`. The address of the store leads every process into its own
working directory. The driver prints why the query stopped, and its last complete micro-batch.
"""

import json
import os
import sys
from pathlib import Path

from model.vocabulary import ScriptConfig, Workload
from spark_impl.runtime.session import session
from spark_impl.runtime.systems import CASE
from spark_impl.script import QueryProblem, ScriptQuery
from tests.harness.announcements import say

MASTER = "local-cluster[2,1,1024]"
STORE = "/proc/self/cwd/store"


def main(folder: Path) -> None:
    """Run the query in ``folder`` until it stops."""
    os.chdir(folder)
    data = json.loads((folder / "workload.json").read_text(encoding="utf-8"))
    config = ScriptConfig.from_json(Workload.from_json(data).config)
    with session(MASTER) as spark:
        history, checkpoint = folder / "history", folder / "checkpoint"
        query = ScriptQuery(spark, config, history, STORE, [CASE], checkpoint=checkpoint)
        try:
            query.run_available()
        except QueryProblem as problem:
            say(f"stopped: {problem}")
        say(f"complete: {query.store.committed()}")
        say("done")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
