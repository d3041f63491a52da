"""Room ``grouping`` on Spark: balanced routing of skewed streams (docs/grouping.md).

* :mod:`spark_impl.grouping.keys` turns keys into numbers, all at once.
* :mod:`spark_impl.grouping.keys` counts keys in little space.
* :mod:`spark_impl.grouping.candidates` says where the keys of a window may go.
* :mod:`spark_impl.grouping.router` sends the tuples of one sender there.
* :mod:`spark_impl.grouping.windows` is what comes between micro-batches.
* :mod:`spark_impl.grouping.tasks` makes Spark tasks of it, :mod:`spark_impl.grouping.query` what
  a user calls.
* :mod:`spark_impl.grouping.instances` has instances work, with a state and timed;
  :mod:`spark_impl.grouping.instances` is what they make of tuples that are aggregated.
* :mod:`spark_impl.grouping.store` is where a stream keeps all that.
"""

from spark_impl.grouping.instances import (
    MicroBatch,
    Step,
    at_instances,
    merged_answers,
    partial_aggregates,
)
from spark_impl.grouping.query import Grouping, GroupingProblem, GroupingStream, Work
from spark_impl.grouping.system import make_system, run_in_process, run_workloads

__all__ = [
    "Grouping",
    "GroupingProblem",
    "GroupingStream",
    "MicroBatch",
    "Step",
    "Work",
    "at_instances",
    "make_system",
    "merged_answers",
    "partial_aggregates",
    "run_in_process",
    "run_workloads",
]
