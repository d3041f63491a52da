"""Room ``script`` on Spark: sensor scripts, shared and placed (docs/script.md)."""

from model.vocabulary.script.plan import ScriptPlan, compile_plan
from spark_impl.script.query import (
    Progress,
    ScriptQuery,
    progress,
    rejected,
    results,
    undefined,
)
from spark_impl.script.system import make_system, run_in_process, run_workloads
from spark_impl.script.waiting import pending

__all__ = [
    "Progress",
    "ScriptPlan",
    "ScriptQuery",
    "compile_plan",
    "make_system",
    "pending",
    "progress",
    "rejected",
    "results",
    "run_in_process",
    "run_workloads",
    "undefined",
]
