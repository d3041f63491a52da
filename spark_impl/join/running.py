"""One chain and its store: one epoch after the other.

Rules of this file:

* What a chain does is decided when it is opened: what its store says of the past, and what the
  caller says of the future.
* One at a time: whoever runs an epoch has locked the store.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from model.vocabulary import JoinConfig
from model.vocabulary.trace import Step
from spark_impl.join.epoch import check_slots, run_epoch
from spark_impl.join.matching import FreePredicate
from spark_impl.join.queries import continued, ranks_of
from spark_impl.join.rendezvous import Place
from spark_impl.join.store import Commit, open_store
from spark_impl.join.task import Plan, Summary
from spark_impl.runtime import lock
from spark_impl.runtime.histories import InputProblem

PATIENCE_S = 60.0
"""A neighbour that is silent for so long is taken for dead."""


class Chain:
    """A chain with its store.

    On the store of an earlier run it goes on from there: with another number of workers, with
    queries that are new from the next epoch on, and without those that are gone. Raises
    :class:`InputProblem` when the store belongs to another chain, and
    :class:`EnvironmentProblem` when there are fewer task slots than workers.
    """

    def __init__(
        self,
        spark: SparkSession,
        config: JoinConfig,
        store: Path,
        free: Mapping[str, FreePredicate] | None = None,
        *,
        recording: bool = False,
        history: bool = False,
        on_step: Callable[[Step], None] | None = None,
        patience_s: float = PATIENCE_S,
    ) -> None:
        check_slots(spark, config.workers)
        self._spark = spark
        self._free = dict(free or {})
        self._recording = recording
        self._history = history
        self._on_step = on_step
        self._patience_s = patience_s
        self.store = open_store(store, config)
        self._last = before = self.store.last()
        if before is not None:
            config = continued(
                before.config, before.functions, config, self._free, before.epoch + 1
            )
        self.config = config
        """With all queries that the chain has had, and the epochs of each."""

    @property
    def flushed(self) -> bool:
        """The last epoch is over: nothing follows it."""
        return self._last is not None and self._last.flush

    @property
    def epochs(self) -> int:
        """How many epochs have happened; also the number of the next one."""
        return 0 if self._last is None else self._last.epoch + 1

    def advance(self, rows: DataFrame | None) -> list[Summary]:
        """Run the next epoch: arrivals with ``stream`` and the columns of inputs, or a flush."""
        held = lock.hold(self.store.root)
        try:
            before = self.store.last()
            if before != self._last:
                msg = f"the chain in {self.store.root} was continued elsewhere: open it again"
                raise InputProblem(msg)
            if before is not None and before.flush:
                msg = f"the chain in {self.store.root} was flushed, and nothing may follow that"
                raise InputProblem(msg)
            summaries = run_epoch(self._spark, rows, lambda place: self._plan(place, before, rows))
            self._last = self.store.last()
            return summaries
        finally:
            lock.let_go(held)

    def _plan(self, place: Place, before: Commit | None, rows: DataFrame | None) -> Plan:
        return Plan(
            config=self.config,
            free=self._free,
            ranks=ranks_of(self.config, self.epochs, self.store.admitted_before),
            store=self.store,
            before=before,
            epoch=self.epochs,
            flush=rows is None,
            place=place,
            patience_s=self._patience_s,
            recording=self._recording,
            history=self._history,
            on_step=self._on_step,
        )
