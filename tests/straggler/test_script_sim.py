"""``straggler sim script``: figures, placements side by side, plots, and what is refused."""

import json
from pathlib import Path

import pytest

from sim.script.placements import PLACEMENTS
from tests.straggler.command import Straggler, assert_refused

SIZE = "sensors=12 rates_hz=5 seconds=15 workers=3"


def options(settings: str) -> list[str]:
    return [part for setting in settings.split() for part in ("--set", setting)]


def test_all_placements_stand_side_by_side(straggler: Straggler, tmp_path: Path) -> None:
    given = [*options(SIZE), "--json", "run.json", "--plot", "run.svg"]
    done = straggler("sim", "script", "--seed", "2", *given)
    assert (done.code, done.err) == (0, "")
    assert "Scheduling and batches changed no step" in done.out
    lines = done.out.splitlines()
    for placement in PLACEMENTS:
        assert any(line.startswith(f"{placement} ") and "%" in line for line in lines), placement
    record = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    assert record["verdict"] == "holds"
    sides = {side["placement"]: side for side in record["beside"]}
    assert tuple(sides) == tuple(PLACEMENTS)
    assert sides["plan"]["measured_per_hour"] == record["measured_per_hour"]
    assert sides["by-sensor"]["sent_over_baseline"] == 1
    assert sides["literal"]["largest_over_even"] == 3
    workers = record["remarks"][0]["workers"]
    assert sum(each["bytes_received"] for each in workers) == record["bytes_sent"]
    assert sum(each["results_sent"] for each in workers) == record["results_sent"]
    assert max(each["busy"] for each in workers) == record["busiest"]
    assert "worker 2 is sent" in done.out
    assert "gaps-and-bursts" in (tmp_path / "run.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("placement", "broken"),
    [
        ("whole", ""),
        ("literal", "no worker has more than the bound of LPT: Worker 0 is sent"),
        ("by-unit", ""),
    ],
)
def test_a_run_names_a_placement_other_than_the_default(
    straggler: Straggler, placement: str, broken: str
) -> None:
    done = straggler("sim", "script", *options(f"{SIZE} placement={placement} placements=none"))
    assert done.code == int(broken != "")
    assert broken in done.out
    assert f"{placement} is not the placement of docs/script.md" in done.out
    assert "which of them host a sensor is not compared" in done.out
    # Whether a bound is kept or not, it is not for scheduling and batches.
    assert "Scheduling and batches changed no step" in done.out
    assert "by-sensor" not in done.out


def test_results_that_only_the_end_tells_have_no_latency(straggler: Straggler) -> None:
    done = straggler("sim", "script", *options(f"{SIZE} lateness_us=none placements=plan"))
    line = next(line for line in done.out.splitlines() if line.startswith("plan "))
    assert line.split()[-1] == "-"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("seconds=1e9", ("seconds is 1e9", "at most 100000")),
        ("seconds=20000", ("seconds is 20000", "at most 200,000")),
        ("sensors=5000", ("sensors is 5000", "at most 1000")),
        ("placements=plan,litteral", ("placements is 'litteral'", "did you mean 'literal'?")),
        ("rate_hz=3", ("'rate_hz'", "did you mean 'rates_hz'?")),
        ("rates_hz=often", ("rates_hz is 'often'",)),
    ],
)
def test_bad_settings_are_refused_in_one_sentence(
    straggler: Straggler, settings: str, words: tuple[str, ...]
) -> None:
    assert_refused(straggler("sim", "script", *options(settings)), *words)
