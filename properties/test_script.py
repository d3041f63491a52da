"""Room ``script``: model, simulation and Spark's operator agree, and its claims hold."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from hypothesis import example, given
from hypothesis import strategies as st

from model.script.claims import CLAIMS
from model.script.slices import choose
from model.script.stream import Span
from model.script.variants import CLOSE_CALLS, VARIANTS
from model.vocabulary import ScriptConfig, Workload
from properties.agreement import Agreement, put_to_the_test, telling
from properties.promised import Reached, promised
from properties.reached_cases import TROUBLES
from sim.script import simulate
from sim.script.host import ScriptTuning
from spark_impl.script.graph import WINDOW, Node
from spark_impl.script.slices import cut
from straggler.judging.plan_counterexamples import TimedCase
from straggler.rooms.script.formatter import unparse
from straggler.rooms.script.language import parse
from straggler.strategies.script import SENSORS, cases, timed_cases
from straggler.strategies.telling_scripts import TELLING
from straggler.strategies.troubled import in_crowded


def written_and_read(case: Workload) -> Workload:
    """Return the workload with its workflows written as scripts and read again."""
    config = ScriptConfig.from_json(case.config)
    read = tuple(parse(unparse(each), each.name, SENSORS) for each in config.workflows)
    assert read == config.workflows
    return case.with_(config=replace(config, workflows=read).to_json())


@promised(*put_to_the_test(CLAIMS), "late after a silence", examples=50)
@telling(each.example for each in VARIANTS.values())
@telling(CLOSE_CALLS)
@telling(TELLING.values())
@given(case=cases().map(written_and_read))
def test_spark_s_operator_does_what_the_model_does(reached: Reached, case: Workload) -> None:
    Agreement("script", reached).of_operator(case)


@st.composite
def timed_in_all_ways(draw: st.DrawFn) -> Sequence[TimedCase[ScriptConfig]]:
    """Draw workers of all kinds, some that fail, and some with room for one tuple."""
    blocking, dropping = draw(timed_cases()), draw(timed_cases())
    full = in_crowded(blocking, "block"), in_crowded(dropping, "drop")
    return (draw(timed_cases()), draw(timed_cases(fails=True)), *full)


@promised("late arrivals", *TROUBLES, "rows redelivered", examples=12)
@given(clusters=timed_in_all_ways())
def test_a_timed_run_is_a_run_of_the_model(
    reached: Reached, clusters: Sequence[TimedCase[ScriptConfig]]
) -> None:
    for config, (plan, seed) in clusters:
        # With the placement of docs/script.md, which the model has.
        planned = replace(plan, tuning=ScriptTuning())
        Agreement("script", reached).of_run(simulate(planned, config, seed))


SPANS = st.sets(st.tuples(st.integers(1, 200), st.integers(1, 100)), min_size=1, max_size=4)


@promised("cut at edges", "cut into panes", "edges that add no cut", examples=40)
@example(spans={(24, 10)}, per_hour=Fraction(1_493_073))
@example(spans={(20, 10), (24, 10)}, per_hour=Fraction(2 * 10**6))
@given(spans=SPANS, per_hour=st.builds(Fraction, st.integers(0, 10**7), st.sampled_from((1, 7))))
def test_windows_share_the_cheaper_slices(
    reached: Reached, spans: set[tuple[int, int]], per_hour: Fraction
) -> None:
    due = choose([Span(*span) for span in spans], per_hour)
    windows = [Node(WINDOW, length_ms=length, slide_ms=slide) for length, slide in spans]
    found = cut(windows, per_hour)
    assert {(*comb,) for comb in found.combs} == {(*comb,) for comb in due.cutting}
    assert (*found[1:],) == (*due[1:],)
    for length, slide in spans:
        for edge in (at * slide + end for at in range(12) for end in (0, -length)):
            assert due.is_panes or any(
                comb.cut_us(edge * 1_000) == edge * 1_000 for comb in due.cutting
            )
    reached.add({"cut into panes" if due.is_panes else "cut at edges": 1})
    reached.add({"edges that add no cut": not due.is_panes and len(due.cutting) < 2 * len(spans)})
