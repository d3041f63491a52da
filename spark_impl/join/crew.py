"""The workers of a chain: a stage that stays from epoch to epoch, if there are slots for it.

Rules of this file:

* Between two epochs the workers are only kept to save time. They end if another chain of the
  session needs their slots, and nothing is lost with them.
* A failed epoch runs again in a new stage, as often as Spark would run a stage again.
"""

import logging
import threading
import weakref
from collections.abc import Callable

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from spark_impl.join.stage import REPLACED_S, Stage, StageLost, check_slots
from spark_impl.join.task import Plan, Summary

_ATTEMPTS = ("spark.stage.maxConsecutiveAttempts", "4")
"""Setting of Spark: how often it runs a stage that fails, if it runs failed tasks again."""
log = logging.getLogger("straggler.join")


class Crew:
    """The workers of one chain, at most ``most``.

    A stage that stays has tasks for more of them than an epoch needs, so that it outlives a change
    of their number: at most half of the slots, and none if other chains have workers.
    """

    def __init__(self, spark: SparkSession, most: int) -> None:
        self._spark = spark
        self._most = most
        self._stage: Stage | None = None
        self._busy = threading.RLock()
        """Held while an epoch runs."""
        self._taken = 0
        """Number of slots that the stage has, or waits for."""
        self._is_in_the_way = False
        """True if another chain waits for the slots."""
        with _registered:
            _crews.add(self)

    def run(
        self, rows: DataFrame | None, plan: Plan, is_awaited: Callable[[], bool]
    ) -> list[Summary]:
        """Run one epoch, of which nothing counts before it is committed; return the reports.

        ``rows`` have the columns of :func:`spark_impl.join.inputs.union_inputs`; ``None`` is a
        flush. Raise :class:`QueryProblem` if the epoch fails, or is not awaited any more.
        """
        with self._busy:
            try:
                summaries = self._attempt(rows, plan, is_awaited)
            except BaseException:
                self.close()
                raise
            if self._stage is not None and (
                plan.flush or self._is_in_the_way or not self._stage.stays
            ):
                self.close()
        if self._is_in_the_way:  # since the question above
            self.leave()
        return summaries

    @property
    def slots(self) -> int:
        """Number of slots that are not free for others; none once the stage has ended."""
        stage = self._stage
        return self._taken if stage is None or stage.is_running else 0

    def close(self) -> None:
        """End the workers; the next epoch has new ones."""
        with self._busy:
            stage, self._stage, self._taken = self._stage, None, 0
            self._is_in_the_way = False
            if stage is not None:
                stage.close()

    def leave(self) -> None:
        """End the workers as soon as no epoch runs."""
        self._is_in_the_way = True
        if self._busy.acquire(blocking=False):
            try:
                self.close()
            finally:
                self._busy.release()

    def _attempt(
        self, rows: DataFrame | None, plan: Plan, is_awaited: Callable[[], bool]
    ) -> list[Summary]:
        left = _attempts(self._spark.sparkContext)
        slots = check_slots(self._spark, plan.config.workers)
        while True:
            left -= 1
            try:
                return self._begin(rows, plan, is_awaited, slots).finish(is_awaited)
            except StageLost as lost:
                self.close()
                if not left:
                    raise
                log.info("epoch %d runs again: %s", plan.epoch, lost)
            slots = check_slots(self._spark, plan.config.workers, REPLACED_S)

    def _begin(
        self, rows: DataFrame | None, plan: Plan, is_awaited: Callable[[], bool], slots: int
    ) -> Stage:
        workers = plan.config.workers
        with _registered:
            free = slots - sum(each.slots for each in _crews)
        if self._stage is not None and free > 0 and self._stage.is_ready_for(plan):
            self._stage.begin(rows, plan, free)
            return self._stage
        self.close()
        free = self._find_room(slots, workers)
        stays = free > workers
        self._stage = Stage(self._spark, rows, plan, is_awaited, self._taken, stays=stays)
        return self._stage

    def _find_room(self, slots: int, workers: int) -> int:
        """Take slots, of which one is left for the tasks that bring rows if workers are to stay.

        Return the number of those that other chains leave free.
        """
        with _registered:
            others = [each for each in _crews if each is not self and each.slots]
            for each in others:
                if slots - sum(other.slots for other in others) < workers:
                    each.leave()
            free = slots - sum(each.slots for each in others)
            if free <= workers:
                log.info(
                    "a chain of %d workers starts them anew for every epoch, because %d task slots"
                    " are free: with %d they would stay",
                    workers,
                    free,
                    workers + 1,
                )
            self._taken = workers if others else max(workers, min(self._most, free // 2))
        return free


_registered = threading.Lock()
_crews = weakref.WeakSet[Crew]()
"""All crews of this process."""


def _attempts(context: SparkContext) -> int:
    """Return how often an epoch is tried: once if Spark runs no failed task again."""
    again = context._jsc.sc().taskScheduler().maxTaskFailures() > 1
    return int(context.getConf().get(*_ATTEMPTS)) if again else 1
