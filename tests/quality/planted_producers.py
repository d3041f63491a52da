"""Data of the page of planted bugs: which producer a test plants bugs in, and what none can break.

Rules of this file:

* Every test of the record has a producer here; a function of a file goes before its file.
* A claim is listed in :data:`CANNOT` only if the reason was checked. A claim that nobody has tried
  to break stays a gap. A test compares the reasons about steps with what operators record.
* A step of a task or batch that does not exist breaks every claim about windows. Such a bug says
  little, and none is planted.
"""

from collections.abc import Mapping
from typing import NamedTuple

MODEL = "model"
TIMED = "timed run"
OPERATORS = "Spark's operators"
JOBS = "Spark jobs"
CHANGED = "changed trace"

PRODUCERS: Mapping[str, str] = {
    MODEL: "its rules, without time",
    TIMED: "the model or the cluster in simulated time",
    OPERATORS: "`spark_impl` in process, most of them in simulated time",
    JOBS: "`spark_impl` as queries of Spark",
    CHANGED: "a right trace or record, changed or written by hand",
}
"""Parts that can have a bug, and what each of them is."""

_PLANTED_IN: Mapping[str, str] = {
    "test_grouping_balance.py": MODEL,
    "test_grouping_claims.py": CHANGED,
    "test_grouping_sim.py": TIMED,
    "test_grouping_variants.py": MODEL,
    "test_job_claims_spark.py": JOBS,
    "test_join_claims.py": CHANGED,
    "test_join_decisions.py::test_a_merge_that_joins_nothing_is_found": MODEL,
    "test_join_decisions.py::test_other_decisions_than_those_of_the_run_are_found": MODEL,
    "test_join_decisions.py::test_a_mistake_of_a_controller_is_found": MODEL,
    "test_join_decisions.py": CHANGED,  # by a recomputation with a mistake, or by hand
    "test_join_load.py::test_a_mistake_is_found": MODEL,
    "test_join_load.py": CHANGED,
    "test_join_sim.py::test_copies_that_spark_s_workers_do_not_meet_are_caught": OPERATORS,
    "test_join_sim.py::test_a_block_that_spark_s_workers_take_twice_is_caught": OPERATORS,
    "test_join_sim.py": TIMED,
    "test_join_variants.py": MODEL,
    "test_operator_claims.py": OPERATORS,
    "test_operator_load.py": OPERATORS,
    "test_promises_spark.py": JOBS,
    "test_script_claims.py": CHANGED,
    "test_script_sim.py": TIMED,
    "test_script_variants.py": MODEL,
    "test_simulated_operators.py": OPERATORS,
    "test_slack_claims.py": CHANGED,
    "test_slack_requirement.py::test_a_wrong_formula_is_noticed_in_any_stream": MODEL,
    "test_slack_requirement.py": CHANGED,
    "test_slack_variants.py": MODEL,
    "test_timed_claims.py::test_a_bug_of_the_model_breaks_its_claims": MODEL,
    "test_timed_claims.py::"
    "test_lost_routes_of_the_model_are_less_work_than_candidates_allow": MODEL,
    "test_timed_claims.py": TIMED,
    "test_timed_load.py": TIMED,
    "test_watermark_claims.py": CHANGED,
    "test_watermark_variants.py::test_a_late_pair_out_of_nothing_is_refuted": CHANGED,
    "test_watermark_variants.py": MODEL,
}
"""Producer that a file of tests, or one of its functions, plants bugs in."""


AGAIN = frozenset({"test_watermark_variants.py::test_every_claim_is_broken_by_something"})
"""Tests whose bugs other tests of the file plant as well, under names of their own."""


def producer_of(test: str) -> str:
    """Return the producer that a test plants its bug in."""
    function = test.partition("[")[0].rpartition("/")[2]
    return _PLANTED_IN.get(function) or _PLANTED_IN[function.partition("::")[0]]


class Cannot(NamedTuple):
    """Claims of a room that no bug of a producer can break."""

    producer: str
    room: str
    claims: tuple[str, ...]
    reason: str
    """Reason, as the end of a sentence."""


_CORRECTIONS = (
    "no operator records final answers, revisions or cleared pairs in process, because corrections"
    " run as Spark jobs, and without such steps the claim is undetermined"
)
_HELD = (
    "it is judged by decisions on the tuples held, and a job decides by the time in which workers"
    " are busy"
)
_BYTES = "it is judged by bytes between workers, and the blocks of the rules have no size in bytes"
_OF_BYTES = (
    "bytes between workers are at most those of the formula, and at least 95% of them",
    "bytes between workers do not grow with the number of queries",
)
CANNOT: tuple[Cannot, ...] = (
    Cannot(
        OPERATORS,
        "slack",
        (
            "eventual exactness",
            "nothing owed after the flush",
            "final answers are the latest",
            "exact means all rows",
            "corrections do not wait",
            "delay and value are compared as they came",
        ),
        _CORRECTIONS,
    ),
    Cannot(
        OPERATORS,
        "watermark",
        (
            "final answers are the latest",
            "exact means all rows",
            "eventual exactness",
            "nothing owed after the flush",
            "corrections do not wait",
        ),
        _CORRECTIONS,
    ),
    Cannot(MODEL, "join", _OF_BYTES, _BYTES),
    Cannot(
        JOBS,
        "join",
        (
            "no worker is above tau1 while the mean is not, and nothing is shed then",
            "the share shed is that of the smoothed utilisation",
            "shedding ends only a margin below where it begins",
            "workers come and go as the utilisation asks",
        ),
        _HELD,
    ),
)
