"""Evidence on the page of published claims: tests of promises, and benchmark figures on Spark."""

from collections.abc import Mapping
from typing import NamedTuple

from sim.sweep.experiment import Reproduction

# -------------------------------------------------------------------------------- promises

REPRODUCED, ASSUMING = Reproduction.REPRODUCED, Reproduction.UNDER_ASSUMPTIONS
HPM = "HPM: continuous aggregates over out-of-order streams by a hybrid processing model"
S2J = "S2J: a scalable framework for stream joins"
TAG = "TAG: time-aware grouping for stream processing"
DISORDER = "Dynamic adjustment of the watermark by local disorder"
SCRIPTS = "A framework for real-time aggregation over large numbers of sensors"


class Promise(NamedTuple):
    """A published promise without a figure, and the tests that decide it."""

    room: str
    claim: str
    source: str
    verdict: Reproduction
    found: str
    """The result and its conditions."""
    tests: tuple[str, ...]
    """Test ids of pytest."""
    errata: tuple[str, ...] = ()
    """Names of errata: readings of the promise that do not hold."""


PROMISES = (
    Promise(
        "slack",
        "Corrections from history make every answer exact in the end.",
        HPM,
        ASSUMING,
        "Holds in every behaviour of small scopes, on generated streams and on Spark, with the open"
        " rules for corrections filled in as in slack.md, section 6.",
        (
            "tests/model/test_scopes.py::test_every_behaviour_of_a_small_scope_keeps_the_promises",
            "properties/test_slack.py::test_spark_s_operator_does_what_the_model_does",
            "properties/test_promises.py::test_every_answer_ends_exact",
        ),
        ("closing-rule", "mixed-tuples", "lost-update", "gamma-without-age", "missing-flush"),
    ),
    Promise(
        "slack",
        "A first answer is off by eps or more with a probability of at most delta.",
        HPM,
        Reproduction.REFUTED,
        "The published law controls a mean and no single answer. The conformal rule keeps the"
        " promise, under the assumptions of slack.md, section 5.",
        ("tests/properties/test_slack_promise.py::test_first_answers_are_as_good_as_promised",),
        ("pd-promise", "windup"),
    ),
    Promise(
        "join",
        "Every pair that matches comes out, and comes out once.",
        S2J,
        ASSUMING,
        "Conditions: only copies of one stream are joined with; a tuple that the other stream has"
        " moved past is sent on at any load, and the progress of the other stream drops it.",
        (
            "tests/model/test_scopes.py::test_every_behaviour_of_a_small_scope_keeps_the_promises",
            "properties/test_join.py::test_spark_s_workers_follow_the_protocol",
            "properties/test_promises.py::test_every_pair_is_joined_exactly_once",
        ),
        ("both-copies", "quiet-chain", "local-timer"),
    ),
    Promise(
        "join",
        "Queries over the same streams share a chain and its bandwidth.",
        S2J,
        REPRODUCED,
        "Each query finds what it finds alone, and bytes between workers are those of one query.",
        (
            "properties/test_join.py::test_spark_s_workers_follow_the_protocol",
            "tests/properties/test_join_load.py::test_queries_share_the_bandwidth_and_chains_do_not",
        ),
    ),
    Promise(
        "join",
        "Nothing is shed while the chain has room.",
        S2J,
        REPRODUCED,
        "Holds in generated loads and in timed runs; blocks of fixed size shed in these cases.",
        (
            "tests/properties/test_join_load.py::test_there_is_no_false_shedding",
            "tests/properties/test_join_load.py::test_nothing_is_shed_below_the_limit",
        ),
    ),
    Promise(
        "join",
        "Workers come and go with the load, and no result is lost.",
        S2J,
        ASSUMING,
        "Condition: workers are removed after too little work, as 3.4 has it, and not after too"
        " much, as 2.2.3 has it.",
        (
            "properties/test_promises.py::test_every_pair_is_joined_exactly_once",
            "tests/properties/test_join_load.py::test_four_workers_become_eight_and_four_again",
        ),
        ("scale-in",),
    ),
    Promise(
        "grouping",
        "The imbalance is O(1): it does not grow with instances or tuples.",
        TAG,
        ASSUMING,
        "Conditions: candidates are weighted by speed, with at least two for a heavy key; the time"
        " of a tuple is that at its instance, without its way; balance is compared with a fluid.",
        (
            "properties/test_promises.py::test_imbalance_does_not_grow_with_instances",
            "tests/properties/test_grouping.py::test_the_makespan_is_that_of_a_fluid_but_for_two_tuples",
            "tests/properties/test_grouping.py::test_rho_does_not_grow_with_tuples",
        ),
        ("uniform-candidates", "hidden-makespan", "way-as-work", "one-candidate"),
    ),
    Promise(
        "grouping",
        "A key is at few instances, and merged answers are those of all its tuples.",
        TAG,
        ASSUMING,
        "Holds with the bound for a window instead of all time, and one more counter. Routes on"
        " Spark equal those of the model, tuple by tuple.",
        ("properties/test_grouping.py::test_spark_s_operator_does_what_the_model_does",),
        ("memory", "counters-rounded-down"),
    ),
    Promise(
        "watermark",
        "The calmer the stream, the shorter the wait; it is never longer than that of a fixed"
        " watermark.",
        DISORDER,
        ASSUMING,
        "Condition: the wait is proportional to the disorder. The text has no formula for disorder;"
        " here it is the share of pairs out of order. As written, the wait is longest in order.",
        ("properties/test_watermark.py::test_spark_s_operator_does_what_the_model_does",),
        ("order-degree",),
    ),
    Promise(
        "script",
        "Sharing intermediate results changes no result.",
        SCRIPTS,
        ASSUMING,
        "The results of a workflow equal those of computing it alone from all tuples, if each"
        " operation gives one result per time.",
        ("properties/test_script.py::test_spark_s_operator_does_what_the_model_does",),
        ("half-updated",),
    ),
    Promise(
        "script",
        "Components go to the worker with the least load, so that loads are even.",
        SCRIPTS,
        ASSUMING,
        "Condition: the load of the worker that gets a component grows, which the listing that we"
        " have omits; then the largest load is within the bound of LPT.",
        ("tests/properties/test_script.py::test_placements_keep_their_bounds",),
        ("load-not-added",),
    ),
)

# -------------------------------------------------------------------------- figures on Spark


class Measured(NamedTuple):
    """A benchmark figure that the page shows beside an experiment."""

    says: str
    benchmark: str
    figure: str


SLACK, GROUPING, JOIN = "slack", "grouping", "join"
RATE_64 = "64: tuples/s"
"""End of the names of figures of chains with blocks of 64 tuples."""

MEASURED: Mapping[str, tuple[Measured, ...]] = {
    "slack-batches": (
        Measured(
            "Rows read for a correction relative to rows needed, five windows per tuple",
            SLACK,
            "5 windows: rows read a correction / rows needed",
        ),
        Measured(
            "The same with fifty windows per tuple",
            SLACK,
            "50 windows: rows read a correction / rows needed",
        ),
    ),
    "grouping-dag": (
        Measured(
            "Tuples/s relative to DAG with alpha 0, half of the instances 1.25 times slower",
            GROUPING,
            "zipf, 1.25x, tag / dag, alpha 0",
        ),
        Measured("Relative to DAG with its usual alpha", GROUPING, "zipf, 1.25x, tag / dag"),
        Measured(
            "Relative to DAG with alpha 0, half of the instances 4 times slower",
            GROUPING,
            "zipf, 4x, tag / dag, alpha 0",
        ),
    ),
    "grouping-throughput": (
        Measured(
            "Tuples/s relative to DAG, half of the instances 1.25 times slower",
            GROUPING,
            "zipf, 1.25x, tag / dag",
        ),
        Measured("The same, half of the instances 4 times slower", GROUPING, "zipf, 4x, tag / dag"),
    ),
    "join-rate": (
        Measured("Tuples/s relative to Spark's own join, 2 workers", JOIN, "chain 2, 64 / native"),
        Measured("Tuples/s with one worker, on two cores in all", JOIN, f"chain 1, {RATE_64}"),
        Measured("Tuples/s with 2 workers", JOIN, f"chain 2, {RATE_64}"),
        Measured("Tuples/s with 4 workers", JOIN, f"chain 4, {RATE_64}"),
    ),
}
"""Figures to show beside each experiment, by its name."""
