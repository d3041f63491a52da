"""Room ``grouping`` on Spark: balanced routing of skewed streams (docs/grouping.md).

* :mod:`spark_impl.grouping.hashes` turns keys into numbers, all at once.
* :mod:`spark_impl.grouping.summaries` counts keys in little space.
* :mod:`spark_impl.grouping.candidates` says where the keys of a window may go.
* :mod:`spark_impl.grouping.router` sends the tuples of one sender there.
* :mod:`spark_impl.grouping.windows` is what comes between micro-batches.
* :mod:`spark_impl.grouping.routing` makes Spark tasks of it, :mod:`spark_impl.grouping.query` what
  a user calls.
* :mod:`spark_impl.grouping.partials` is what the instances make of them.
"""

from spark_impl.grouping.query import Grouping, GroupingStream
from spark_impl.grouping.system import make_system, run_in_process

__all__ = ["Grouping", "GroupingStream", "make_system", "run_in_process"]
