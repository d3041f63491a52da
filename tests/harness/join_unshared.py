"""A chain whose store is another folder for the driver and for every executor.

``python -m tests.harness.join_unshared FOLDER`` runs the first epoch of the chain of
``FOLDER/workload.json`` on executors with working folders of their own, and writes the error of the
chain into ``FOLDER/said``. The driver has its store in ``FOLDER``.
"""

import os
import sys
from pathlib import Path

from model.vocabulary import JoinConfig
from spark_impl.join.chain import Chain
from spark_impl.join.system import rows_of
from spark_impl.runtime.session import session
from spark_impl.runtime.storage import InputProblem
from tests.harness.announcements import say
from tests.harness.join_driver import workload_in

WORKERS = 2
MASTER = f"local-cluster[{WORKERS},1,1024]"
STORE = "/proc/self/cwd/store"
"""Each process reaches its own folder under this address."""


def main(folder: Path) -> None:
    """Run an epoch, which has to fail."""
    os.chdir(folder)
    workload = workload_in(folder)
    with session(MASTER) as spark:
        chain = Chain(spark, JoinConfig.from_json(workload.config), STORE)
        try:
            chain.advance(rows_of(spark, workload.arrivals))
        except InputProblem as problem:
            (folder / "said").write_text(str(problem), encoding="utf-8")
    say("done")


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
