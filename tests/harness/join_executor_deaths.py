"""A chain whose workers kill their executors.

``python -m tests.harness.join_executor_deaths FOLDER`` runs the chain of ``FOLDER/workload.json``
on three executors, each in its own process. In epochs 1 and 2 one worker ends its executor with
SIGKILL, once: in the middle of the protocol in epoch 1, after half of its writing in epoch 2.
"""

import sys
from collections.abc import Callable
from pathlib import Path

from model.vocabulary import JoinConfig
from model.vocabulary.join import Forward
from model.vocabulary.trace import Step
from spark_impl.join.chain import Chain
from spark_impl.join.checkpoint import WorkerState
from spark_impl.join.store import ChainStore
from spark_impl.join.system import rows_of
from spark_impl.runtime.session import session
from tests.harness.driver_kills import end_executor_once
from tests.harness.join_driver import workload_in

WORKERS = 3
MASTER = f"local-cluster[{WORKERS},1,1024]"
DEATHS = ("in the middle", "while writing")
"""Moments of the deaths in epochs 1 and 2."""
EPOCHS = len(DEATHS) + 1


class DeadlyStore(ChainStore):
    """A store in which a worker dies between writing its results and writing its state."""

    def write_state(self, epoch: int, attempt: str, worker: int, state: WorkerState) -> None:
        """Write the state, or die instead."""
        if epoch == 2 and worker == WORKERS - 1:
            end_executor_once(Path(self.root.parent.path, "killed", DEATHS[1]))
        super().write_state(epoch, attempt, worker, state)


def deadly(notes: Path) -> Callable[[Step], None]:
    """Return a hook that ends the executor of worker 1 when it sends a block in epoch 1."""

    def on_step(step: Step) -> None:
        if isinstance(step, Forward) and step.epoch == 1 and step.worker == 1:
            end_executor_once(notes / DEATHS[0])

    return on_step


def main(folder: Path) -> None:
    """Run all epochs of the workload, then the flush."""
    workload = workload_in(folder)
    config = JoinConfig.from_json(workload.config)
    (folder / "killed").mkdir()
    with session(MASTER) as spark:
        chain = Chain(
            spark, config, folder / "store", recording=True, on_step=deadly(folder / "killed")
        )
        chain.store = DeadlyStore(chain.store.root)
        for events in workload.batches():
            chain.advance(rows_of(spark, events))
        chain.advance(None)
    sys.stdout.write("done\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
