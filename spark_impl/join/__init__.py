"""Room ``join`` on Spark: a chain of workers that joins on any predicate (docs/join.md)."""

from spark_impl.join.chain import ChainProblem
from spark_impl.join.in_process import run_in_process
from spark_impl.join.inputs import from_history
from spark_impl.join.query import ChainJoin, ChainStream, Snapshot, one_time, results, snapshots
from spark_impl.join.system import make_system, run_workloads

__all__ = [
    "ChainJoin",
    "ChainProblem",
    "ChainStream",
    "Snapshot",
    "from_history",
    "make_system",
    "one_time",
    "results",
    "run_in_process",
    "run_workloads",
    "snapshots",
]
