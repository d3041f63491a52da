"""Real Spark meets the cases that matter, and the page of what it meets says how often."""

from math import nan
from pathlib import Path

import pytest

from model.script import run as run_script
from model.slack import make_system
from model.vocabulary import Event, ScriptConfig, SlackConfig, Workload
from model.vocabulary.script.config import MILLISECOND_US
from straggler.rooms import find_room
from straggler.rooms.script.language import parse
from tests.harness import reach, stream_packs
from tests.harness.reach import read
from tests.harness.reached_cases import LARGE, LARGE_PARTIAL, PARTIAL, count_script_cases
from tests.quality.reach_page import ALLOWED, RECORD, REQUIRED, RULES, TESTS, never_reached

ROOT = Path(__file__).resolve().parents[2]
CONFIG = SlackConfig(9_000, 4_000, tasks=2, gamma_us=9_000, eps=0.2)


def test_spark_has_met_every_required_region() -> None:
    assert never_reached(read(RECORD)) == []


def test_recorded_tests_exist() -> None:
    for each in TESTS:
        file, _, test = each.partition("::")
        assert f"def {test}" in (ROOT / file).read_text("utf-8"), each


@pytest.mark.parametrize("room", REQUIRED)
def test_a_region_that_is_never_reached_is_named(room: str) -> None:
    found = read(RECORD)
    region = REQUIRED[room][0]
    without = {**found[room].regions, region: 0}
    assert never_reached({**found, room: found[room]._replace(regions=without)}) == [
        f"{room}: {region}"
    ]


def test_a_rule_that_requires_no_part_is_named() -> None:
    found = read(RECORD)
    kept = [(rule, n) for rule, n in found["slack"].rules if rule != ALLOWED[0]]
    assert never_reached({**found, "slack": found["slack"]._replace(rules=kept)}) == [
        f"slack: {' '.join(ALLOWED[0])}, {PARTIAL}"
    ]


def test_a_method_without_a_large_window_is_named() -> None:
    found = read(RECORD)
    small = [(rule, {**n, LARGE_PARTIAL: 0}) for rule, n in found["slack"].rules]
    assert never_reached({**found, "slack": found["slack"]._replace(rules=small)}) == [
        f"slack: {' '.join(pair)}, {LARGE_PARTIAL}" for pair in RULES
    ]


def test_a_recorder_counts_what_spark_recorded(tmp_path: Path) -> None:
    pack = stream_packs.draw_pack(CONFIG, 6, seed=1, dense=2)
    model = make_system()
    traces = {name: model(case) for name, case in pack.cases.items()}
    recorder = reach.Recorder(tmp_path / "reach.json")
    recorder.pytest_sessionstart()
    reach.note_traces(pack.cases, traces)
    recorder.pytest_sessionfinish()
    found = read(tmp_path / "reach.json")["slack"]
    assert found.cases == 6
    assert found.window_tuples[-1] >= LARGE
    assert found.regions[LARGE_PARTIAL] == found.rules[0][1][LARGE_PARTIAL] > 0
    late = (find_room("slack").check(case, traces[n]).guards for n, case in pack.cases.items())
    assert found.regions["late pairs"] == sum(guards["late pairs"] for guards in late)


def test_windows_and_arrivals_of_scripts_are_counted() -> None:
    flow = parse('total = sum(union("a", "b"), 4, 4)\nshare = total / 2', "flow")
    rows = [("a", 0, 1.0), ("b", 5, 1.0), ("a", 13, 1.0), ("a", 13, 1.0), ("b", 6, nan)]
    arrivals = tuple(
        Event(seq, min(seq, 2) if key == "a" else seq, key, at_ms * MILLISECOND_US, value, seq)
        for seq, (key, at_ms, value) in enumerate(rows)
    )
    config = ScriptConfig((flow,), (("a", 60), ("b", 60))).to_json()
    case = Workload("script", arrivals, config, flush=True)
    found = count_script_cases(case, run_script(case))
    assert {name: count for name, count in found.items() if count} == {
        "results of windows: sum": 3,
        "results of arithmetic: /": 3,
        "windows": 3,
        "empty windows": 1,  # from 8 to 12 ms
        "redelivered tuples": 1,
        "values that are not finite": 1,
        "on a boundary": 1,
    }


def test_nothing_is_counted_without_a_recorder() -> None:
    reach.note_traces({}, {})
