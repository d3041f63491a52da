"""Silent sensors hold nothing back, and are late only by what all sensors have sent."""

from math import nan

import pytest
from hypothesis import given

from model.checking.claims import Outcome
from model.script import run
from model.script.claims import judge
from model.script.rules import RULES
from model.script.run import admit
from model.script.silence_claims import CASES
from model.vocabulary import Event, ScriptConfig, Trace, Workload
from model.vocabulary.script.config import REASON_LATE, REASON_NOT_FINITE, Rejected, Result
from model.vocabulary.script.tree import Sensor, Statement, Union, Window, Workflow
from properties.oracles import script as script_recomputation
from properties.oracles.script import Lateness, Row
from properties.stream_packs import collect
from straggler.strategies.script import cases

MS = 1_000
BOTH = Window("sum", Union((Sensor("a"), Sensor("dead"))), 10, 10)
RUNS = 150


def case(*arrived: tuple[int, str, float, float], **settings: object) -> Workload:
    """Return arrivals (arrival time in ms, sensor, stamp in ms, value) of an unflushed stream."""
    config = ScriptConfig(
        (Workflow("w", (Statement("both", BOTH),)),),
        (("a", 3_600), ("dead", 3_600), ("other", 3_600)),
        **{"lateness_us": 5 * MS, "idle_after_us": 30 * MS, **settings},  # type: ignore[arg-type]  # fields by name
    )
    arrivals = tuple(
        Event(seq, seq, sensor, round(at_ms * MS), value, now_ms * MS)
        for seq, (now_ms, sensor, at_ms, value) in enumerate(arrived)
    )
    return Workload("script", arrivals, config.to_json(), flush=False)


def results(workload: Workload) -> list[tuple[int, float]]:
    return [(each.ts_us, each.value) for each in run(workload).of(Result)]


def late(trace: Trace) -> list[int]:
    return [each.seq for each in trace.of(Rejected) if each.reason == REASON_LATE]


A_GOES_ON = tuple((now_ms, "a", now_ms, 1.0) for now_ms in range(0, 60, 10))


def test_a_union_waits_for_a_silent_sensor_as_long_as_it_is_not_idle() -> None:
    arrived = ((0, "dead", 1, 100.0), *A_GOES_ON)
    assert results(case(*arrived, idle_after_us=None)) == []
    # At 40 ms the silence is longer than 30 ms; the latest reading is of 50 ms.
    assert results(case(*arrived)) == [(9_000, 101.0)] + [
        (end_ms * MS - MS, 1.0) for end_ms in (20, 30, 40)
    ]
    assert results(case(*arrived[:5])) == []  # 30 ms of silence are not longer than 30 ms


def test_a_sensor_that_never_sent_is_idle_from_the_first_arrival_on() -> None:
    assert results(case(*A_GOES_ON[:4])) == []
    assert results(case(*A_GOES_ON[:5])) == [(9_000, 1.0), (19_000, 1.0), (29_000, 1.0)]


def test_a_sensor_that_returns_is_late_below_the_floor_and_its_watermark_stays() -> None:
    back = ((50, "dead", 44, 7.0), (50, "dead", 45, 7.0), (51, "dead", 44.999, 7.0))
    trace = run(case(*A_GOES_ON, *back))
    assert late(trace) == [6, 8]


def test_tuples_that_run_ahead_make_no_sensor_idle() -> None:
    ahead = tuple((1, "a", at_ms, 1.0) for at_ms in (0, 1_000, 9_000))
    assert late(run(case(*ahead, (2, "dead", 3, 1.0)))) == []


def test_a_sensor_that_nobody_asks_for_moves_the_clocks() -> None:
    arrived = ((0, "a", 0, 1.0), (31, "other", 80, 1.0), (32, "a", 70, 1.0))
    assert late(run(case(*arrived))) == [2]
    assert late(run(case(*arrived, idle_after_us=None))) == []


def test_a_value_that_is_not_finite_is_no_sign_of_life() -> None:
    arrived = ((0, "dead", 0, 1.0), *A_GOES_ON[:4], (35, "dead", 35, nan), (40, "a", 40, 1.0))
    trace = run(case(*arrived))
    assert [each.reason for each in trace.of(Rejected)] == [REASON_NOT_FINITE]
    assert [each.ts_us for each in trace.of(Result)] == [9_000, 19_000, 29_000]


def test_silence_without_a_lateness_is_refused() -> None:
    with pytest.raises(ValueError, match="idle_after_us is 30000; without lateness_us it must be"):
        case(lateness_us=None)


# ------------------------------------------------------------------------------------- the oracle


def recomputed(workload: Workload, oracle: type[Lateness] = Lateness) -> Lateness:
    config = ScriptConfig.from_json(workload.config)
    return oracle(workload.to_json(), config.asked_for)


def is_recomputed(workload: Workload, oracle: type[Lateness] = Lateness) -> bool:
    """Return whether rejections and final watermarks are those of the oracle."""
    config = ScriptConfig.from_json(workload.config)
    sensors, rejected = admit(workload.with_(flush=False), config, RULES)
    expected = recomputed(workload, oracle)
    watermarks_us = {sensor: stream.until_us for sensor, stream in sensors.items()}
    asked_us = {sensor: expected.watermark_us[sensor] for sensor in config.asked_for}
    return [(each.seq, each.reason) for each in rejected] == expected.rejected and (
        asked_us == {sensor: watermarks_us[sensor] for sensor in config.asked_for}
    )


def fixed(workload: Workload) -> Workload:
    return workload.with_(config={**workload.config, "watermark": "fixed"})


def test_the_oracle_has_the_words_of_the_vocabulary() -> None:
    words = script_recomputation.LATE, script_recomputation.NOT_FINITE
    assert words == (REASON_LATE, REASON_NOT_FINITE)


@given(workload=cases())
def test_lateness_is_that_of_a_recomputation(workload: Workload) -> None:
    assert is_recomputed(fixed(workload))


class ByEventTime(Lateness):
    def moment_us(self, row: Row) -> int:
        event_us: int = row[3]
        return event_us


class Unheard(Lateness):
    def hear(self, row: Row) -> None:
        if row[2] in self.asked_for:
            super().hear(row)


class LateAreNoSign(Lateness):
    def counts(self, row: Row) -> bool:
        return super().counts(row) and not (self.rejected and self.rejected[-1][0] == row[0])


class Impatient(Lateness):
    def raise_to(self, sensor: str, floor_us: int) -> None:
        super().raise_to(sensor, floor_us + (self.lateness_us or 0))


@pytest.mark.parametrize("oracle", [ByEventTime, Unheard, LateAreNoSign, Impatient])
def test_drawn_silences_show_a_mistake_of_either_side(oracle: type[Lateness], seed: int) -> None:
    drawn = map(fixed, collect(cases(), RUNS, seed))
    assert not all(is_recomputed(workload, oracle) for workload in drawn)


def test_drawn_cases_contain_silences_that_matter(seed: int) -> None:
    evidence = [judge(each, run(each)) for each in collect(cases(), RUNS, seed)]
    for guard in CASES:
        assert sum(each.guards[guard] > 0 for each in evidence) >= 3, f"there were no {guard}"
    assert not any(v.outcome is Outcome.BROKEN for each in evidence for v in each.verdicts)
