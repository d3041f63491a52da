"""Room ``watermark``: model, simulation and Spark's operator agree, and its claims hold."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from model.vocabulary import WatermarkConfig, Workload
from model.vocabulary.watermark import READINGS, Inserted
from model.watermark import run
from model.watermark.claims import CLAIMS
from model.watermark.variants import VARIANTS
from model.windows.claims import LACKING
from properties import close_calls
from properties.agreement import Agreement, put_to_the_test, telling
from properties.promised import Reached, promised
from sim.watermark import simulate
from straggler.strategies.telling_windows import OF_WATERMARK
from straggler.strategies.timed_cases import TimedCase
from straggler.strategies.troubled import all_of, in_all_regions
from straggler.strategies.watermark import cases, timed_cases

UPSTREAMS = (0, 0, 1, 2, 3)
PAST_IDLE = "insertions past an idle operator"


@promised(*put_to_the_test(CLAIMS), LACKING, "insertions", PAST_IDLE, examples=60)
@telling(each.example for each in VARIANTS.values())
@telling([*close_calls.WATERMARK, *OF_WATERMARK])
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
