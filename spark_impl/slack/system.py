"""The Spark pipeline as a System: workloads in, traces out."""

from functools import partial

from model.vocabulary import System
from spark_impl.runtime.systems import one_at_a_time
from spark_impl.slack.room import SLACK
from spark_impl.windows import system

run_workloads = partial(system.run_workloads, SLACK)
"""Many workloads of one configuration in one query: :func:`spark_impl.windows.system`."""
run_in_process = partial(system.run_in_process, SLACK)
"""A workload through the processor, without Spark: the steps of the stream part."""
read_trace = partial(system.read_trace, SLACK)
"""The traces that the query of a pack left in its store."""


def make_system(master: str = "local[2]") -> System:
    """The pipeline as a callable; it uses the running session, or one of its own for each call."""
    return one_at_a_time(run_workloads, "slack", master)
