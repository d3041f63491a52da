"""Room ``join`` on Spark: a chain of workers that joins on any predicate (docs/join.md)."""

from model.vocabulary.join_load import LoadRules
from spark_impl.join.agent import QueryStatus, Status, answers, ask, status, submit, withdraw
from spark_impl.join.answers import (
    Progress,
    pending,
    progress,
    rejected,
    results,
    snapshots,
)
from spark_impl.join.in_process import run_in_process
from spark_impl.join.inputs import from_history
from spark_impl.join.query import ChainJoin, ChainStream
from spark_impl.join.store import Commit
from spark_impl.join.system import make_system, run_workloads

__all__ = [
    "ChainJoin",
    "ChainStream",
    "Commit",
    "LoadRules",
    "Progress",
    "QueryStatus",
    "Status",
    "answers",
    "ask",
    "from_history",
    "make_system",
    "pending",
    "progress",
    "rejected",
    "results",
    "run_in_process",
    "run_workloads",
    "snapshots",
    "status",
    "submit",
    "withdraw",
]
