"""A chain whose workers are processes of a cluster, and die: ``python -m properties.join.cluster``.

Takes a folder with ``workload.json`` and runs the chain on three executors, processes of their own.
In each epoch but the first a worker takes its executor with it, by SIGKILL, once: in the middle of
the protocol, and when it has written a part of what it found.
"""

import sys
from collections.abc import Callable
from pathlib import Path

from model.vocabulary import JoinConfig
from model.vocabulary.join import Forward
from model.vocabulary.trace import Step
from properties.join.driver import workload_in
from spark_impl.join.lane import WorkerState
from spark_impl.join.running import Chain
from spark_impl.join.store import Store
from spark_impl.join.system import rows_of
from spark_impl.runtime.session import session
from tests.harness.driver_kills import end_executor_once

WORKERS = 3
MASTER = f"local-cluster[{WORKERS},1,1024]"
DEATHS = ("in the middle", "while writing")
"""In epoch 1 and 2."""
EPOCHS = len(DEATHS) + 1


class DeadlyStore(Store):
    """The store as it is; a worker dies between its results and its state."""

    def write_state(self, epoch: int, attempt: str, worker: int, state: WorkerState) -> None:
        """Write, or die."""
        if epoch == 2 and worker == WORKERS - 1:
            end_executor_once(self.root.parent / "killed" / DEATHS[1])
        super().write_state(epoch, attempt, worker, state)


def deadly(notes: Path) -> Callable[[Step], None]:
    """Takes the executor of a worker with it when it sends a block."""

    def on_step(step: Step) -> None:
        if isinstance(step, Forward) and step.epoch == 1 and step.worker == 1:
            end_executor_once(notes / DEATHS[0])

    return on_step


def main(folder: Path) -> None:
    """Run all epochs of the workload and the flush."""
    workload = workload_in(folder)
    config = JoinConfig.from_json(workload.config)
    (folder / "killed").mkdir()
    with session(MASTER) as spark:
        chain = Chain(
            spark, config, folder / "store", recording=True, on_step=deadly(folder / "killed")
        )
        chain.store = DeadlyStore(folder / "store")
        for events in workload.batches():
            chain.advance(rows_of(spark, events))
        chain.advance(None)
    sys.stdout.write("done\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
