"""The status of the assumption behind first answers, as ``straggler diff`` shows it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from model.slack import make_system
from model.slack.assumption import status_of
from model.vocabulary import Event, SlackConfig, System, Trace, Workload
from model.vocabulary.windows import Correlation
from straggler.cli import main as cli
from straggler.rooms import Case, Remark
from straggler.rooms.slack.room import ASSUMPTION, remarks, rests_on_assumption

CONFIG = SlackConfig(size_us=8, slide_us=8, keyed=False, max_slack_us=0, gamma_us=0)
WINDOWS = 30
CORRECTED = WINDOWS - 1
"""Number of windows whose third tuple is late; that of the last window still finds it open."""


def case(config: SlackConfig, late_value: float) -> Case:
    """Return windows of four tuples whose third one comes last."""
    times_us = [8 * window + at for window in range(1, WINDOWS + 1) for at in (0, 2, 6, 4)]
    arrivals = tuple(
        Event(seq, seq, "", time_us, late_value if time_us % 8 == 4 else 1.0 + time_us % 3, seq)
        for seq, time_us in enumerate(sorted(times_us, key=lambda us: us + 9 * (us % 8 == 4)))
    )
    workload = Workload("slack", arrivals, config.to_json())
    return Case("made", "made", "sum", workload, in_order=False)


def remark_on(each: Case, system: System) -> Remark:
    (remark,) = remarks(each, system(each.workload))
    return remark


def test_values_that_follow_delay_contradict_the_assumption() -> None:
    remark = remark_on(case(CONFIG, late_value=100.0), make_system())
    assert remark.name == "assumption"
    assert remark.sentence.startswith(f"{ASSUMPTION}: contradicted, rho +")
    assert remark.sentence.endswith(f" {CORRECTED} windows")
    assert remark.data["status"] == "contradicted"
    assert 0 < remark.data["low"] <= remark.data["rho"] <= remark.data["high"]


def test_figures_are_those_of_the_trace() -> None:
    each = case(CONFIG, late_value=2.0)
    trace = make_system()(each.workload)
    (remark,) = remarks(each, trace)
    status = status_of(trace.of(Correlation))
    assert remark.data == {"assumption": ASSUMPTION, **status._asdict()}
    assert status.windows == CORRECTED
    assert f"rho {status.rho:+.2f} (99.9%: " in remark.sentence


@pytest.mark.parametrize("n", [0, 1, 2, 19])
def test_few_windows_say_nothing(n: int) -> None:
    steps = [Correlation(0, 8 * window, "", 0, 1, 4, 2, 4, 4) for window in range(n)]
    (remark,) = remarks(case(CONFIG, 2.0), Trace("made", steps))
    windows = "1 window" if n == 1 else f"{n} windows"
    assert remark.sentence == f"{ASSUMPTION}: untested, {windows} where 20 are needed"


def test_impossible_figures_are_untested() -> None:
    steps = [Correlation(0, 0, "", 0, 1, 4, 2, -4, 4), Correlation(0, 8, "", 0, 1, 4, 2, 4, 4)]
    (remark,) = remarks(case(CONFIG, 2.0), Trace("made", steps))
    assert remark.data["status"] == "untested"


@pytest.mark.parametrize(
    ("changes", "rests"),
    [
        ({}, True),
        ({"aggregate": "avg"}, True),
        ({"aggregate": "median"}, True),
        ({"aggregate": "count"}, False),
        ({"sampling": "adversarial"}, False),
        ({"lambda_thr": 0.9}, False),
        ({"aggregate": "max", "lambda_thr": 0.9}, False),
        ({"control": "pd"}, False),
        ({"control": "max"}, False),
        ({"control": "fixed"}, False),
    ],
)
def test_only_what_rests_on_the_assumption_has_the_remark(
    changes: dict[str, object], rests: bool
) -> None:
    config = replace(CONFIG, **changes)  # type: ignore[arg-type]  # the fields are given by name
    assert rests_on_assumption(config) == rests
    assert bool(remarks(case(config, 2.0), Trace("made", ()))) == rests


def test_diff_prints_and_stores_the_remark(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "verdict.json"
    options = ("--input", "umts", "--per", "task", "--system", "model.slack:make_system")
    assert cli.main(["diff", "slack", *options, "--json", str(path)]) == 0
    out = capsys.readouterr().out
    line = f"umts (simulated), sum per task, 5s/1s, assumption: {ASSUMPTION}: "
    assert sum(each.startswith(line) for each in out.splitlines()) == 1
    assert "count per task, 5s/1s, assumption" not in out
    rows = json.loads(path.read_text(encoding="utf-8"))
    (stored,) = rows[0]["remarks"]
    assert stored["status"] in ("untested", "contradicted", "not contradicted")
    assert {"rho", "low", "high", "windows", "sentence"} <= set(stored)
    assert rows[1]["remarks"] == []
