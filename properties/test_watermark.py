"""Room ``watermark``: model, simulation and Spark's operator agree, and its claims hold."""

from hypothesis import given
from hypothesis import strategies as st

from model.vocabulary import Event, WatermarkConfig, Workload
from model.vocabulary.watermark import READINGS
from model.watermark.claims import CLAIMS
from model.watermark.variants import VARIANTS
from properties.agreement import Agreement, put_to_the_test, telling
from properties.promised import Reached, promised
from sim.watermark import simulate
from straggler.judging.plan_counterexamples import SeededPlan
from straggler.strategies.streams import timings
from straggler.strategies.watermark import cases, configs

UPSTREAMS = (0, 0, 1, 2, 3)
SECOND_US = 1_000_000


def reversed_far() -> Workload:
    """Return hours of tuples in reverse order; one arrival makes more than 255 pairs."""
    config = WatermarkConfig(3_600 * SECOND_US, 3_600 * SECOND_US, 60 * SECOND_US, k=280)
    times_us = [20 * SECOND_US * number for number in reversed(range(300))]
    events = [Event(n, n, "a", time_us, 1.0, times_us[0] + n) for n, time_us in enumerate(times_us)]
    return Workload("watermark", tuple(events), config.to_json(), (150,))


def _waiting_long(case: Workload) -> Workload:
    return case.with_(config={**case.config, "max_wait_us": 10**18})


@promised(*put_to_the_test(CLAIMS), examples=80)
@telling(each.example for each in VARIANTS.values())
@telling([_waiting_long(VARIANTS["pairs_left_behind"].example), reversed_far()])
@given(case=cases(upstreams=UPSTREAMS))
def test_spark_s_operator_does_what_the_model_does(reached: Reached, case: Workload) -> None:
    Agreement.of("watermark", reached).of_operator(case)


@promised("late pairs", "insertions", *(f"reading {each}" for each in READINGS), examples=80)
@given(case=cases(READINGS, upstreams=UPSTREAMS))
def test_the_operator_reads_as_the_model_does(reached: Reached, case: Workload) -> None:
    """The literal reading breaks claims; model and operator take it alike."""
    agreement = Agreement.of("watermark", reached)
    expected = agreement.room.reference()(case)
    agreement.of_steps(case, expected)
    reached.add(agreement.room.check(case, expected).guards)
    reached.add({f"reading {case.config['reading']}": 1})


@st.composite
def timed_cases(draw: st.DrawFn) -> tuple[WatermarkConfig, SeededPlan]:
    config = draw(configs(upstreams=(0, 0, 1, 2)))
    return config, draw(timings(max(config.size_us, config.slide_us), config.tasks))


@promised("late pairs", "corrections", "insertions", "shed", "sent_again", examples=80)
@given(case=timed_cases())
def test_a_timed_run_is_a_run_of_the_model(
    reached: Reached, case: tuple[WatermarkConfig, SeededPlan]
) -> None:
    config, (plan, seed) = case
    Agreement.of("watermark", reached).of_run(simulate(plan, config, seed))
