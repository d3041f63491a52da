"""Scheduler that distributes tests among processes (``--dist loadscope``).

Tests that start Spark spend half of their time waiting for Java, for disks and for processes that
they kill; all other tests compute. Both kinds run at the same time but never in one process: a
process that has started Spark takes no file without Spark. The Spark tests of a folder share a
session.
"""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]  # the package has no types
from xdist.workermanage import WorkerController  # type: ignore[import-untyped]  # the package has no types

ASKS_FOR_SPARK = re.compile(r"spark: SparkSession|needs_proc")


@cache
def starts_spark(test_file: Path) -> bool:
    """Return whether tests of a file start Spark: it uses a session, or is named ``*_spark.py``."""
    if test_file.stem.endswith("_spark"):
        return True
    return ASKS_FOR_SPARK.search(test_file.read_text(encoding="utf-8")) is not None


class SparkApart(LoadScopeScheduling):  # type: ignore[misc]  # the package has no types
    """A scheduler of whole folders of Spark tests, and of single files of other tests.

    One process begins with tests without Spark, all others with tests that start it. The remaining
    tests of a crashed process go to another one, usually to its replacement by xdist.
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
        file, _, _ = nodeid.partition("::")
        return file.rpartition("/")[0] if starts_spark(self.config.rootpath / file) else file

    def _assign_work_unit(self, node: WorkerController) -> None:
        scope = self._next_for(node)
        if scope is None:
            node.shutdown()
            return
        self.workqueue.move_to_end(scope, last=False)
        super()._assign_work_unit(node)

    def _reschedule(self, node: WorkerController) -> None:
        if node not in self.registered_collections:
            return  # it has just replaced a crashed process
        if self.workqueue and not node.shutting_down and self._next_for(node) is None:
            node.shutdown()
            return
        super()._reschedule(node)
        if self._pending_of(self.assigned_work[node]) == 1 and not node.shutting_down:
            self._reschedule(node)  # a test begins only when the next one is known

    def _next_for(self, node: WorkerController) -> str | None:
        """Return the next scope for a process, or None if it may run none of the rest."""
        folders = [scope for scope in self.workqueue if not scope.endswith(".py")]
        files = [scope for scope in self.workqueue if scope.endswith(".py")]
        without_spark = [
            each
            for each in self.nodes
            if not each.shutting_down
            and all(scope.endswith(".py") for scope in self.assigned_work[each])
        ]
        if node not in without_spark:
            files = []
        ordered = [*files, *folders] if without_spark[:1] == [node] else [*folders, *files]
        return ordered[0] if ordered else None
