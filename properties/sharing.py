"""How tests are shared out among processes (``--dist loadscope``).

Tests that start Spark wait half of their time, for Java, for disks and for processes that they
kill; all others compute. So both kinds run at the same time, but not in one process: one that
has started Spark takes no file that does without. A folder's tests of Spark share a session.
"""

import re
from functools import cache
from pathlib import Path

from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]
from xdist.workermanage import WorkerController  # type: ignore[import-untyped]

ASKS_FOR_SPARK = re.compile(r"spark: SparkSession|needs_proc")


@cache
def starts_spark(test_file: Path) -> bool:
    """Whether tests of this file start Spark: it asks for a session, or is named ``*_spark.py``."""
    if test_file.stem.endswith("_spark"):
        return True
    return ASKS_FOR_SPARK.search(test_file.read_text(encoding="utf-8")) is not None


class SparkApart(LoadScopeScheduling):  # type: ignore[misc]
    """Whole folders of tests that start Spark, single files of others.

    One process begins with tests that do without Spark, all others with those that start it.
    """

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
        if self.workqueue and not node.shutting_down and self._next_for(node) is None:
            node.shutdown()
            return
        super()._reschedule(node)

    def _next_for(self, node: WorkerController) -> str | None:
        """What the process is to run next, if it may run any of what is left."""
        folders = [scope for scope in self.workqueue if not scope.endswith(".py")]
        files = [scope for scope in self.workqueue if scope.endswith(".py")]
        if not all(scope.endswith(".py") for scope in self.assigned_work[node]):
            files = []
        going_on = [each for each in self.nodes if not each.shutting_down]
        ordered = [*files, *folders] if going_on[:1] == [node] else [*folders, *files]
        return ordered[0] if ordered else None
