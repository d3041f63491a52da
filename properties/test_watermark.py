"""Room ``watermark``: model, simulation and Spark's operator agree, and its claims hold."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from model.vocabulary import Event, WatermarkConfig, Workload
from model.vocabulary.watermark import READINGS, Inserted
from model.watermark import run
from model.watermark.claims import CLAIMS
from model.watermark.variants import CLOSE_CALLS, VARIANTS
from model.windows.variants import example
from properties.agreement import Agreement, put_to_the_test, telling
from properties.promised import Reached, promised
from sim.watermark import simulate
from straggler.judging.plan_counterexamples import TimedCase
from straggler.strategies.troubled import all_of, in_all_regions
from straggler.strategies.watermark import cases, timed_cases

UPSTREAMS = (0, 0, 1, 2, 3)
PLAIN = {"size_us": 10, "slide_us": 10, "max_wait_us": 10, "k": 3}
VALUES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
LATE_UPSTREAM = example(
    "watermark",
    WatermarkConfig(10, 10, 0, k=3, upstreams=1).to_json(),
    (0, 12, 40, 5, 31, 60, 14),
    VALUES,
    (3, 5),
)
"""Tuples that come late, after an upstream operator has inserted a watermark."""
CLOCKS = [
    example("watermark", {**PLAIN, **settings}, times_us, VALUES[: len(times_us)], cuts)
    for times_us, cuts, settings in (
        ((5, 5), (), {}),
        ((9, 5), (1,), {}),
        ((9, 7, 8, 9), (), {}),
        ((9, 7, 8, 9), (), {"max_wait_us": 10**18}),
        ((5, 9, 5), (), {"max_wait_us": 3}),
        ((5, 9), (), {}),
        ((5, 10), (), {}),
        ((5, 9), (), {"upstreams": 1}),
        ((5, 6), (), {"upstreams": 1, "insert_every_us": 2}),
        ((5, 6, 7), (), {"upstreams": 2, "idle_after_us": 1}),
    )
]
"""Ties, a cluster that fills, goes on and rounds, edges of windows, and operators upstream."""
SECOND_US = 1_000_000
PAST_IDLE = "insertions past an idle operator"


def reversed_far() -> Workload:
    """Return hours of tuples in reverse order; one arrival makes more than 255 pairs."""
    config = WatermarkConfig(3_600 * SECOND_US, 3_600 * SECOND_US, 60 * SECOND_US, k=280)
    times_us = [20 * SECOND_US * number for number in reversed(range(300))]
    events = [Event(n, n, "a", time_us, 1.0, times_us[0] + n) for n, time_us in enumerate(times_us)]
    return Workload("watermark", tuple(events), config.to_json(), (150,))


@promised(*put_to_the_test(CLAIMS), "insertions", PAST_IDLE, examples=80)
@telling(each.example for each in VARIANTS.values())
@telling([*CLOSE_CALLS, *CLOCKS, reversed_far(), LATE_UPSTREAM])
@given(case=cases(upstreams=UPSTREAMS))
def test_spark_s_operator_does_what_the_model_does(reached: Reached, case: Workload) -> None:
    Agreement("watermark", reached).of_operator(case)
    if case.config.get("upstreams"):
        patient = case.with_(config={**case.config, "idle_after_us": None})
        reached.add({PAST_IDLE: run(case).of(Inserted) != run(patient).of(Inserted)})


@st.composite
def read_in_all_ways(draw: st.DrawFn) -> Sequence[Workload]:
    """Draw a query and a stream for each reading, and one with operators upstream."""
    one_of_each = all_of(READINGS, lambda each: cases((each,), upstreams=UPSTREAMS))
    return (*draw(one_of_each), draw(cases(READINGS, upstreams=(1, 2, 3))))


@promised("late pairs", "insertions", *(f"reading {each}" for each in READINGS), examples=16)
@given(read=read_in_all_ways())
def test_the_operator_reads_as_the_model_does(reached: Reached, read: Sequence[Workload]) -> None:
    """The literal reading breaks claims; model and operator take it alike."""
    agreement = Agreement("watermark", reached)
    for case in read:
        expected = agreement.room.reference()(case)
        agreement.of_steps(case, expected)
        reached.add(agreement.room.check(case, expected).guards)
        reached.add({f"reading {case.config['reading']}": 1})


@st.composite
def timed_in_all_ways(draw: st.DrawFn) -> Sequence[TimedCase[WatermarkConfig]]:
    """Draw a cluster of each region, crowded ones, one with corrections, one below operators."""
    corrected = timed_cases("late", corrections=(True,))
    below = timed_cases(upstreams=(1, 2))
    return (*draw(in_all_regions(timed_cases)), draw(corrected), draw(below))


@promised("late pairs", "corrections", "insertions", "shed", "rows redelivered", examples=8)
@given(clusters=timed_in_all_ways())
def test_a_timed_run_is_a_run_of_the_model(
    reached: Reached, clusters: Sequence[TimedCase[WatermarkConfig]]
) -> None:
    for config, (plan, seed) in clusters:
        Agreement("watermark", reached).of_run(simulate(plan, config, seed))
