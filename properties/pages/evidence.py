"""Evidence of the page of claims: tests of promises, and figures of benchmarks on Spark."""

from collections.abc import Mapping
from typing import NamedTuple

from sim.sweep.experiment import Reproduction

# -------------------------------------------------------------------------------- promises

REPRODUCED, ASSUMING = Reproduction.REPRODUCED, Reproduction.UNDER_ASSUMPTIONS
HPM = "HPM: continuous aggregates over out-of-order streams by a hybrid processing model"
S2J = "S2J: a scalable framework for stream joins"
TAG = "TAG: time-aware grouping for stream processing"
WATERMARK = "Dynamic adjustment of the watermark by local disorder"
SCRIPTS = "A framework for real-time aggregation over large numbers of sensors"


class Promise(NamedTuple):
    """One of them."""

    room: str
    claim: str
    source: str
    verdict: Reproduction
    found: str
    """What is so, and what it takes."""
    tests: tuple[str, ...]
    """As pytest names them."""
    errata: tuple[str, ...] = ()
    """Readings of it that do not hold."""


PROMISES = (
    Promise(
        "slack",
        "Corrections from history make every answer exact in the end.",
        HPM,
        ASSUMING,
        "With the rules for corrections that are left open filled in as in slack.md, section 6:"
        " in every behaviour of small scopes, on generated streams, and on Spark.",
        (
            "properties/slack/test_model.py::test_every_behaviour_of_a_small_scope_keeps_the_promises",
            "properties/slack/test_model.py::test_no_claim_is_broken",
            "properties/slack/test_spark.py::test_pack_in_spark_equals_model",
        ),
        ("closing-rule", "mixed-tuples", "lost-update", "gamma-without-age", "missing-flush"),
    ),
    Promise(
        "slack",
        "A first answer is off by eps or more with a probability of at most delta.",
        HPM,
        Reproduction.REFUTED,
        "The published law keeps a mean and nothing about single answers. The conformal rule keeps"
        " the promise, under the assumptions of slack.md, section 5.",
        (
            "properties/slack/test_published_law.py::test_the_promise_is_refuted",
            "properties/slack/test_promise.py::test_first_answers_are_as_good_as_promised",
        ),
        ("pd-promise", "windup"),
    ),
    Promise(
        "join",
        "Every pair that matches comes out, and comes out once.",
        S2J,
        ASSUMING,
        "Copies of one stream alone may be joined with; a tuple that the other stream has moved"
        " past is sent on whatever the loads, and is dropped by the progress of the other stream.",
        (
            "properties/join/test_model.py::test_every_behaviour_of_a_small_scope_keeps_the_promises",
            "properties/join/test_chain.py::test_workers_keep_the_promises_of_the_chain",
            "properties/join/test_spark.py::test_chains_on_spark_keep_every_promise",
        ),
        ("both-copies", "quiet-chain", "local-timer"),
    ),
    Promise(
        "join",
        "Queries over the same streams share a chain and its bandwidth.",
        S2J,
        REPRODUCED,
        "Each finds what it finds alone, and bytes between workers are those of one query.",
        (
            "properties/join/test_model.py::test_a_query_finds_what_it_finds_alone",
            "properties/join/test_load_claims.py::test_queries_share_the_bandwidth_and_chains_do_not",
        ),
    ),
    Promise(
        "join",
        "Nothing is shed while the chain has room.",
        S2J,
        REPRODUCED,
        "In generated loads and in timed runs; a block of fixed size does shed then.",
        (
            "properties/join/test_load_claims.py::test_there_is_no_false_shedding",
            "properties/join/test_sim_load.py::test_nothing_is_shed_below_the_limit",
        ),
    ),
    Promise(
        "join",
        "Workers come and go with the load, and no result is lost.",
        S2J,
        ASSUMING,
        "Workers are removed when they have had too little to do, not, as written, too much.",
        (
            "properties/join/test_chain.py"
            "::test_workers_that_come_and_go_between_epochs_change_no_result",
            "properties/join/test_sim_load.py::test_four_workers_become_eight_and_four_again",
        ),
        ("scale-in",),
    ),
    Promise(
        "grouping",
        "The imbalance is O(1): it does not grow with instances or tuples.",
        TAG,
        ASSUMING,
        "Candidates must be weighted by speed, with two for a heavy key at least; the time of a"
        " tuple is that at its instance, without its way; and a fluid is what balance is held to.",
        (
            "properties/grouping/test_model.py::test_work_is_within_the_bounds",
            "properties/test_promises.py::test_imbalance_does_not_grow_with_instances",
            "properties/grouping/test_model.py::test_the_makespan_is_that_of_a_fluid_but_for_two_tuples",
            "properties/grouping/test_model.py::test_rho_does_not_grow_with_tuples",
            "properties/grouping/test_sim.py::test_rho_does_not_grow_with_instances",
        ),
        ("uniform-candidates", "hidden-makespan", "way-as-work", "one-candidate"),
    ),
    Promise(
        "grouping",
        "A key is at few instances, and merged answers are those of all its tuples.",
        TAG,
        ASSUMING,
        "With the bound for a window instead of all time, and one counter more; routes on Spark are"
        " those of the model, tuple by tuple.",
        (
            "properties/grouping/test_model.py::test_no_claim_is_broken",
            "properties/grouping/test_model.py::test_answers_do_not_depend_on_routes",
            "properties/grouping/test_agreement.py::test_the_pipeline_does_what_the_model_does",
        ),
        ("memory", "counters-rounded-down"),
    ),
    Promise(
        "watermark",
        "The calmer the stream, the shorter the wait; it is never longer than that of a fixed"
        " watermark.",
        WATERMARK,
        ASSUMING,
        "The wait must be in proportion to the disorder, for which there is no formula: here it is"
        " the share of pairs that are out of order. As written, the wait is longest in order.",
        (
            "properties/watermark/test_model.py::test_no_claim_is_broken",
            "properties/watermark/test_model.py"
            "::test_nothing_is_answered_earlier_than_by_a_fixed_watermark_can_be",
            "properties/watermark/test_model.py"
            "::test_the_literal_reading_keeps_all_promises_but_those_on_disorder",
        ),
        ("order-degree",),
    ),
    Promise(
        "script",
        "Sharing intermediate results changes no result.",
        SCRIPTS,
        ASSUMING,
        "Results of a workflow are those of computing it alone from all tuples, if an operation"
        " gives one result a time.",
        (
            "properties/script/test_model.py::test_no_claim_is_broken",
            "properties/script/test_model.py::test_others_change_nothing",
        ),
        ("half-updated",),
    ),
    Promise(
        "script",
        "Components go to the worker with the least load, so that loads are even.",
        SCRIPTS,
        ASSUMING,
        "The load of the worker that gets a component must grow, which the printed algorithm"
        " leaves out; then the largest load is within the bound of LPT.",
        ("properties/script/test_model.py::test_placements_keep_their_bounds",),
        ("load-not-added",),
    ),
)

# -------------------------------------------------------------------------- figures on Spark


class Measured(NamedTuple):
    """A figure that stands beside an experiment."""

    says: str
    benchmark: str
    figure: str


GROUPING, JOIN, WATERMARK = "grouping", "join", "watermark"
SLACK, SCRIPT = "slack", "script"
OF = "64: tuples/s"
"""Of chains with blocks of 64."""
BYTES = "Bytes between workers by the least there could be, blocks of"

WAIT = "disorder: mean wait, s"
BY_ITSELF = "by the operator of one task by itself"

MEASURED: Mapping[str, tuple[Measured, ...]] = {
    "slack-batches": (
        Measured(
            "Rows read for a correction by those that it needs, five windows a tuple",
            SLACK,
            "5 windows: rows read a correction / rows needed",
        ),
        Measured(
            "Fifty windows a tuple", SLACK, "50 windows: rows read a correction / rows needed"
        ),
        Measured(
            "Tuples/s of the whole query where 30% are late for a window, by those where 1% are",
            SLACK,
            "30% late against 1%",
        ),
    ),
    "grouping-dag": (
        Measured(
            "Tuples/s by those of DAG with alpha 0, half of the instances 1.25 times slower",
            GROUPING,
            "zipf, 1.25x, tag / dag, alpha 0",
        ),
        Measured("By those of DAG with its usual alpha", GROUPING, "zipf, 1.25x, tag / dag"),
        Measured(
            "With alpha 0, half of them 4 times slower", GROUPING, "zipf, 4x, tag / dag, alpha 0"
        ),
    ),
    "grouping-throughput": (
        Measured(
            "Tuples/s by those of DAG, half of the instances 1.25 times slower",
            GROUPING,
            "zipf, 1.25x, tag / dag",
        ),
        Measured("Half of them 4 times slower", GROUPING, "zipf, 4x, tag / dag"),
    ),
    "join-block-bytes": (
        Measured(f"{BYTES} 20 tuples", JOIN, "zeta 20: bytes / least bytes"),
        Measured(f"{BYTES} 64", JOIN, "zeta 64: bytes / least bytes"),
        Measured(f"{BYTES} 256", JOIN, "zeta 256: bytes / least bytes"),
    ),
    "join-efficiency": (
        Measured("Share of comparisons that give a pair, chain", JOIN, "P of the chain"),
        Measured("Spark's own join", JOIN, "P of native"),
        Measured("Every pair compared", JOIN, "P of plain"),
    ),
    "join-queries-bytes": (
        Measured("Bytes with 4 queries by those with one", JOIN, "4 queries: bytes / bytes of one"),
        Measured("With 16", JOIN, "16 queries: bytes / bytes of one"),
    ),
    "join-queries-rate": (
        Measured("Tuples/s with one query", JOIN, "1 queries: tuples/s"),
        Measured("With 4", JOIN, "4 queries: tuples/s"),
        Measured("With 16", JOIN, "16 queries: tuples/s"),
    ),
    "join-rate": (
        Measured("Tuples/s by those of Spark's own join, 2 workers", JOIN, "chain 2, 64 / native"),
        Measured("Tuples/s with one worker, on two cores in all", JOIN, f"chain 1, {OF}"),
        Measured("With 2", JOIN, f"chain 2, {OF}"),
        Measured("With 4", JOIN, f"chain 4, {OF}"),
    ),
    "script-balance": (
        Measured(
            "Largest load by an even share, four workers, 1,024 workflows of 1,000 sensors",
            SCRIPT,
            "largest load by even share, 1,024 workflows",
        ),
    ),
    "script-computations": (
        Measured(
            "Share of bytes that the blocks of 1,024 workflows save beside the hash of sensors",
            SCRIPT,
            "bytes less than by hash, 1,024 workflows",
        ),
    ),
    "script-lines": (
        Measured("Lines of the first script of script.md", SCRIPT, "lines of the script"),
        Measured("Of the same in PySpark", SCRIPT, "lines of PySpark"),
    ),
    "script-shared-sensors": (
        Measured(
            "Share of bytes that blocks save beside the hash of sensors, 8 of 16 shared by a union",
            SCRIPT,
            "bytes less than by hash, printed set",
        ),
    ),
    "watermark-reading": (
        Measured(f"Mean wait in s for the disorder, M = 3 s, {BY_ITSELF}", WATERMARK, WAIT),
    ),
    "watermark-wait": (
        Measured(
            f"Ratio by that of the fixed one, 3 s, {BY_ITSELF}", WATERMARK, "E, disorder / fixed"
        ),
        Measured("Coverage of the dynamic watermark", WATERMARK, "disorder: coverage"),
        Measured("Of the fixed one", WATERMARK, "fixed: coverage"),
    ),
}
"""By the name of the experiment."""
