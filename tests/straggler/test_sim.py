"""``straggler explore`` and ``straggler sim``: small scopes searched, and timed runs."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.straggler.command import Straggler


def test_a_scope_is_searched_and_every_planted_bug_found(
    straggler: Straggler, tmp_path: Path
) -> None:
    asked = ("--scope", "conformal", "--json", "explored.json", "--junit", "j.xml")
    done = straggler("explore", "slack", *asked)
    assert done.code == 0
    assert "scope conformal: 1,568 states, 2,631 transitions, depth 18" in done.out
    assert "17 of 17 planted bugs are caught." in done.out
    record = json.loads((tmp_path / "explored.json").read_text(encoding="utf-8"))
    assert record["scopes"][0]["states"] == 1_568
    assert all(bug["claim"] for bug in record["planted_bugs"])
    suite = ElementTree.parse(tmp_path / "j.xml").getroot()[0]
    names = [case.get("name", "") for case in suite]
    assert sum(name.startswith("planted bug ") for name in names) == 17
    assert any(name.startswith("conformal: ") for name in names)
    assert suite.get("failures") == "0"


@pytest.mark.parametrize(
    ("room", "variant", "told"),
    [
        ("slack", "lost_update", "Correct rule: The stream never writes a closed window again"),
        ("join", "no_numbers", "(r0, s0) came out twice.\n    Broken after 6 actions.\n"),
        ("join", "no_numbers", "      6. |                                 --> [r0] => (r0 s0) A"),
        ("grouping", "heavy_drawn", "4. A tuple of key a arrives: arrived have ab | a."),
        ("script", "union_as_a_set", 'x = sum(union("a", "a"), 2, 1)'),
    ],
)
def test_a_planted_bug_tells_its_shortest_path(
    straggler: Straggler, room: str, variant: str, told: str
) -> None:
    done = straggler("explore", room, "--variant", variant)
    assert (done.code, told in done.out) == (1, True), done.out


SIZES = {
    "slack": "size_us=5s messages=400",
    "watermark": "",
    "join": "seconds=5 pace_us=never window_us=500ms",
    "grouping": "tuples=1500 window_tuples=500 batch_tuples=250 keys=60 instances=4",
    "script": "sensors=12 rates_hz=5 seconds=15 workers=3",
}


def options(settings: str) -> list[str]:
    return [part for setting in settings.split() for part in ("--set", setting)]


def figures(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("room", SIZES)
def test_a_run_has_figures_a_plot_and_a_digest(
    straggler: Straggler, tmp_path: Path, room: str
) -> None:
    files = ("--json", "run.json", "--plot", "run.svg")
    done = straggler("sim", room, "--seed", "2", *options(SIZES[room]), *files)
    assert (done.code, done.err) == (0, ""), done
    assert "Scheduling and batches changed no step" in done.out
    assert "Seed 2, digest " in done.out
    assert figures(tmp_path)["verdict"] == "holds"
    assert "<svg" in (tmp_path / "run.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("room", "settings", "words"),
    [
        ("join", "seconds=5 window_us=5", "that scheduling and batches could have changed: "),
        ("grouping", "tuples=300 batch_tuples=100 keys=20", "the cases that matter never came up"),
    ],
)
def test_a_run_in_which_nothing_happened_is_undetermined(
    straggler: Straggler, room: str, settings: str, words: str
) -> None:
    done = straggler("sim", room, *options(settings))
    assert (done.code, words in " ".join(done.out.split())) == (3, True), done


def test_faults_have_times_with_units_and_those_that_come_too_late_are_named(
    straggler: Straggler,
) -> None:
    def run(faults: str) -> str:
        given = options(f"{SIZES['grouping']} policies=none tiers=node")
        return straggler("sim", "grouping", *given, "--set", f"faults={faults}").out

    plain = run("slow worker-1 1000000 9000 2.5; replay log>worker-1 3 1500")
    written = run("slow worker-1 1s 9ms 2.5; replay log>worker-1 3 1.5ms")
    assert written.rsplit("digest ", 1)[1] == plain.rsplit("digest ", 1)[1]
    late = run("slow worker-1 1 9 2; pause worker-0 700000000 5")
    assert "pause worker-0 at 700000000 us changed nothing" in late
    assert "slow worker-1" not in late
