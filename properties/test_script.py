"""Room ``script``: model, simulation and Spark's operator agree, and its claims hold."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from model.script.claims import CLAIMS
from model.script.variants import VARIANTS
from model.vocabulary import ScriptConfig, Workload
from model.vocabulary.script.plan import compile_plan
from properties import close_calls
from properties.agreement import Agreement, put_to_the_test, telling
from properties.oracles.placement import Script
from properties.promised import Reached, promised
from properties.reached_cases import TROUBLES
from sim.script import simulate
from sim.script.host import ScriptTuning
from straggler.rooms.script.formatter import unparse
from straggler.rooms.script.language import parse
from straggler.strategies.script import SENSORS, cases, timed_cases
from straggler.strategies.telling_scripts import TELLING, draw_shares, script_of
from straggler.strategies.timed_cases import TimedCase
from straggler.strategies.troubled import in_crowded


def written_and_read(case: Workload) -> Workload:
    """Return the workload with its workflows written as scripts and read again."""
    config = ScriptConfig.from_json(case.config)
    read = tuple(parse(unparse(each), each.name, SENSORS) for each in config.workflows)
    assert read == config.workflows
    return case.with_(config=replace(config, workflows=read).to_json())


@promised(*put_to_the_test(CLAIMS), "undefined times", "late after a silence", examples=50)
@telling(each.example for each in VARIANTS.values())
@telling(close_calls.SCRIPT)
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


@promised("whole", "large ones split", "by hash")
def test_sensors_are_sent_where_the_page_says(reached: Reached, seed: int) -> None:
    draws = Random(seed)
    for _ in range(300):
        drawn = Script(*draw_shares(draws))
        plan = compile_plan(script_of(*drawn))
        assert plan.hosts == drawn.hosts(), drawn
        reached.add({plan.placement.way: 1})
