"""Scheduler that distributes test files among processes (``--dist loadscope``).

Tests that start Spark spend half of their time waiting for Java, for disks and for processes that
they kill; all other tests compute. Both kinds run at the same time, so that no core is idle:

* One process begins with files without Spark, all others with files that start it. A session takes
  20 s of processor time until its queries run fast, so the first process starts none as long as it
  has other work.
* When one kind is used up, all processes share the rest of the other one: nobody waits at the end.
* A file is never divided, because its tests share fixtures. The longest files come first.
"""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]  # the package has no types
from xdist.workermanage import WorkerController  # type: ignore[import-untyped]  # the package has no types

ASKS_FOR_SPARK = re.compile(r"spark: SparkSession|needs_proc")
LONGEST = (
    "tests/straggler/test_transcripts.py",
    "tests/quality/test_promises_spark.py",
    "properties/test_promises.py",
    "tests/spark_impl/test_kill.py",
    "tests/spark_impl/test_contracts.py",
    "tests/straggler/test_errata.py",
    "tests/straggler/test_runs_page.py",
    "tests/properties/slack/test_promise.py",
    "tests/properties/grouping/test_sim.py",
)
"""Files that take longest in relation to their number of tests. All others come after them, those
with most tests first."""


@cache
def starts_spark(test_file: Path) -> bool:
    """Return whether tests of a file start Spark: it uses a session, or is named ``*_spark.py``."""
    if test_file.stem.endswith("_spark"):
        return True
    return ASKS_FOR_SPARK.search(test_file.read_text(encoding="utf-8")) is not None


class SparkAside(LoadScopeScheduling):  # type: ignore[misc]  # the package has no types
    """A scheduler of files, with tests that start Spark beside tests without it.

    The remaining tests of a crashed process go to another one, usually to its replacement by xdist.
    """

    def remove_node(self, node: WorkerController) -> str | None:
        """Take back the tests that a process has not run; return the test in which it crashed.

        That test is not run again, because it would crash one process after the other.
        """
        given: Mapping[str, Mapping[str, bool]] = self.assigned_work.pop(node)
        left = {
            scope: {test: done for test, done in tests.items() if not done}
            for scope, tests in given.items()
        }
        unfinished = [(scope, test) for scope, tests in left.items() for test in tests]
        if not unfinished:
            return None
        scope, crashed = unfinished[0]
        del left[scope][crashed]
        self.workqueue.update({scope: tests for scope, tests in left.items() if tests})
        for other in self.nodes:
            self._reschedule(other)
        return crashed

    def _split_scope(self, nodeid: str) -> str:
        return nodeid.partition("::")[0]

    def _assign_work_unit(self, node: WorkerController) -> None:
        self.workqueue.move_to_end(self._next_for(node), last=False)
        super()._assign_work_unit(node)

    def _reschedule(self, node: WorkerController) -> None:
        if node not in self.registered_collections:
            return  # it has just replaced a crashed process
        super()._reschedule(node)
        if self._pending_of(self.assigned_work[node]) == 1 and not node.shutting_down:
            self._reschedule(node)  # a test begins only when the next one is known

    def _next_for(self, node: WorkerController) -> str:
        """Return the next file for a process."""
        queued: list[str] = sorted(self.workqueue, key=_rank)
        fresh = [each for each in self.nodes if not each.shutting_down and not self._spark_in(each)]
        wants_spark = fresh[:1] != [node]
        return next((file for file in queued if self._is_spark(file) == wants_spark), queued[0])

    def _spark_in(self, node: WorkerController) -> bool:
        """Return whether a process has started Spark, or is about to."""
        return any(self._is_spark(file) for file in self.assigned_work[node])

    def _is_spark(self, file: str) -> bool:
        return starts_spark(self.config.rootpath / file)


def _rank(file: str) -> int:
    return LONGEST.index(file) if file in LONGEST else len(LONGEST)
