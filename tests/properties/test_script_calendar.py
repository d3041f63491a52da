"""Calendar windows: days begin where the clocks of their zones say, in model, simulation and Spark.

The oracle (``tests/properties/calendar_days.py``) imports nothing of ours.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from model.script import run
from model.script.calendar import begin_us
from model.vocabulary import Event, ScriptConfig, Workload
from model.vocabulary.script.config import Result
from properties.agreement import Agreement
from properties.promised import Reached, promised
from sim.kernel.plan import replay
from sim.script import simulate
from spark_impl.script.calendar import Ticks
from straggler.rooms.script.formatter import unparse
from straggler.rooms.script.language import parse
from straggler.strategies.networks import SEEDS
from tests.properties.calendar_days import begin_s, changes, hours, sums

ZONES = (
    "Europe/Berlin",
    "America/New_York",
    # Clocks change at midnight, a minute later, by half an hour, and for one month.
    "America/Sao_Paulo",
    "America/St_Johns",
    "Australia/Lord_Howe",
    "Africa/Casablanca",
    # Days were skipped; the offset once had seconds; there are no changes.
    "Pacific/Apia",
    "Pacific/Kwajalein",
    "Africa/Monrovia",
    "Asia/Kathmandu",
    "UTC",
)
# 30 December 2011, which Samoa skipped, and days of 23 and 25 hours.
SKIPPED, SHORT, LONG = (
    ("Pacific/Apia", 15_334),
    ("Europe/Berlin", 18_710),
    ("Europe/Berlin", 18_927),
)


@st.composite
def changed_days(draw: st.DrawFn) -> tuple[str, int]:
    """Draw a zone and a day, most often one on which its clock changes."""
    zone, year = draw(st.sampled_from(ZONES)), draw(st.integers(1970, 2060))
    days = changes(zone, year) or [365 * (year - 1970)]
    return zone, max(0, draw(st.sampled_from(days)) + draw(st.sampled_from([0, 0, 1, -1, 40])))


def lengths(zone: str, days: Sequence[int]) -> dict[str, int]:
    """Count the days of each length."""
    return {f"days of {hours(zone, each):g} hours": 1 for each in days}


@promised(*(f"days of {n} hours" for n in (0, 23, 24, 25)), examples=50)
@example(drawn=SKIPPED)
@example(drawn=("America/St_Johns", 14_181))
@given(drawn=changed_days())
def test_days_begin_where_the_clock_first_shows_them(
    reached: Reached, drawn: tuple[str, int]
) -> None:
    zone, day = drawn
    days = [day - 1, day, day + 1, day + 2]
    begins_us = [begin_s(zone, each) * 1_000_000 for each in days]
    assert [begin_us(zone, each) for each in days] == begins_us
    ticks = Ticks(zone)
    assert ticks.us(np.array(days)).tolist() == begins_us
    for each, low_us, high_us in zip(days, begins_us, begins_us[1:], strict=False):
        within = np.array([low_us, (low_us + high_us) // 2, high_us - 1])
        assert low_us == high_us or ticks.of(within).tolist() == [each] * 3
    reached.add(lengths(zone, days))


class Case(NamedTuple):
    """A calendar window over a sensor, around a day."""

    zone: str
    day: int
    length: int
    slide: int
    workload: Workload


@st.composite
def around(draw: st.DrawFn, drawn: tuple[str, int] | None = None) -> Case:
    """Draw readings near the begins of some days, and windows over them."""
    zone, day = drawn or draw(changed_days())
    length, slide = draw(st.sampled_from([(1, 1), (2, 1), (7, 7), (1, 2), (3, 2)]))
    text = f'x = sum("a", {length}d, {slide}d, "{zone}"); y = sum(union(x, x), 3d, 1d, "{zone}")'
    text += '; z = max("a", 5_400_000, 3_600_000) - count("a", 1d, 1d, "UTC"); w = y + z'
    flow = parse(unparse(parse(text, "w")), "w")
    shifts_us = st.sampled_from([-1, 0, 1, 3_600_000_000, 40_000_000_000])
    near = [(draw(st.integers(-3, 3)), draw(shifts_us)) for _ in range(draw(st.integers(1, 12)))]
    stamps_us = sorted(max(0, begin_us(zone, day + at) + us) for at, us in near)
    events = tuple(
        Event(seq, seq, "a", us, float(1 << seq), us) for seq, us in enumerate(stamps_us)
    )
    late_us, percent = draw(st.sampled_from([0, 7_200_000_000])), draw(st.sampled_from([100, 400]))
    config = ScriptConfig((flow,), (("a", 1),), 2, late_us, percent)
    cuts = tuple(sorted(draw(st.sets(st.integers(1, len(events)), max_size=3)) - {len(events)}))
    flush = draw(st.booleans())
    return Case(
        zone, day, length, slide, Workload("script", events, config.to_json(), cuts, flush=flush)
    )


@promised(*(f"days of {n} hours" for n in (0, 23, 25)), "results", examples=50)
@given(case=around() | around(SKIPPED) | around(SHORT) | around(LONG), seed=SEEDS)
def test_calendar_windows_are_those_of_the_clock_everywhere(
    reached: Reached, case: Case, seed: int
) -> None:
    zone, day, length, slide, workload = case
    Agreement("script", reached).of_operator(workload)
    config = replace(ScriptConfig.from_json(workload.config), workers=1)
    plan = replay(workload.arrivals, "drawn", workload.cuts, flush=workload.flush)
    simulated = simulate(plan, config, seed)
    Agreement("script", reached).of_run(simulated)
    near = range(day - 12, day + 18)
    read = [(event.event_time_us, event.value) for event in workload.arrivals]
    x = sums(zone, length, slide, near, read)
    y = sums(zone, 3, 1, near, [*x.items()] * 2)
    found = run(workload.with_(flush=True)).of(Result)
    for name, expected in (("x", x), ("y", y)):
        values = {each.ts_us: each.value for each in found if each.name == name}
        assert len(values) == sum(each.name == name for each in found)
        assert values == expected
        reached.add({"results": len(values)})
    reached.add(lengths(zone, [day]))
