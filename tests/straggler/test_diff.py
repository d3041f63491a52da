"""``straggler diff`` in every room, without Spark: verdicts, figures, counterexamples."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from model.vocabulary import Event, SlackConfig, System
from straggler.cli import diff
from straggler.inputs import inputs
from straggler.inputs.tables import Recording
from straggler.options import Arguments
from straggler.rooms import Room, find_room
from straggler.wiring import make_case
from tests.straggler.command import Straggler
from tests.straggler.own_systems import says_nothing
from tests.straggler.small_workloads import ask, model_of

OWN = "tests.straggler.own_systems"
STEPS = ("--level", "steps")
JSON = ("--json", "v.json")


def rows(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((folder / "v.json").read_text(encoding="utf-8"))
    return found


# ------------------------------------------------------------------------------- what is compared


@pytest.mark.parametrize(
    ("room", "options", "positive"),
    [
        ("slack", "--level steps", "late coverage_before"),
        ("watermark", "--level steps", "late waited_s clocks"),
        ("watermark", "--per task --corrections --aggregate count", "late coverage"),
        ("watermark", "--upstreams 2 --insert-every 5s --clocks arrivals", ""),
        ("join", "--level steps", "matches across_epochs rejected blocks copies in_the_middle"),
        ("script", "--level steps", "tuples shared late undefined results sent"),
        ("script", "--watermark disorder --cluster 4", "results"),
        ("script", "--watermark scaled --cluster 4", "results"),
    ],
)
def test_a_right_system_agrees_and_its_figures_are_in_the_record(
    straggler: Straggler, files: Path, room: str, options: str, positive: str
) -> None:
    done = straggler(*ask(room, *options.split(), *JSON))
    assert (done.code, "Traceback" in done.err) == (0, False), done
    found = rows(files)
    assert {row["verdict"] for row in found} == {"holds"}
    if room == "slack":  # others record steps that are not compared
        assert {row["digest_expected"] for row in found} == {
            row["digest_observed"] for row in found
        }
    for name in positive.split():
        assert found[0][name] > 0, name


def test_all_policies_of_a_router_are_side_by_side(straggler: Straggler, files: Path) -> None:
    assert straggler(*ask("grouping", "--policy", "all", *JSON, *STEPS)).code == 0
    found = {row["query"]: row for row in rows(files)}
    assert found["tag"]["rho"] < found["tag-literal"]["rho"] < found["key"]["rho"]
    assert 1 == found["key"]["replication"] < found["tag"]["replication"]
    assert found["key"]["busiest_us"] > found["tag"]["busiest_us"] > 0


def test_diff_without_recordings_names_the_inputs_that_it_omits(
    straggler: Straggler, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulated = inputs.umts

    def few(name: str, seed: int) -> Recording:
        events = simulated(seed).events[:4_999]
        return Recording(name, name, events)

    named = {name: partial(few, name) for name in inputs.NAMED}
    monkeypatch.setattr(inputs, "NAMED", named)
    query = ("--per", "task", "--aggregate", "count", "--window", "5s", "--slide", "1s")
    done = straggler("diff", "slack", "--system", model_of("slack"), *query)
    assert done.code == 0
    assert "slack  flights " in done.out
    assert "skipped iot_umts: input 'iot_umts' is a recording" in done.out


# -------------------------------------------------------------------------------- undetermined


@pytest.mark.parametrize(
    ("room", "stream", "more", "words"),
    [
        ("slack", "1 3 2", "--fixed-slack 1min", "answered in stream.csv: corrections were"),
        ("slack", "1 2 3", "", "stream.csv is in order, so nothing can be late"),
        ("slack", "1 9 2", "--kinds rejected", "neither the system nor the reference recorded"),
        ("watermark", "1 2 3", "", "everything came in order"),
        ("watermark", "1", "--reading literal", "everything came in order"),
        ("watermark", "3 1", "", "the wait was the same all the time"),
        ("watermark", "3 1", "--reading fixed", "no row came after its window"),
        ("join", "", "--window 0s", "nothing matched in r.csv, s.csv"),
        ("grouping", "", "--set window_tuples=1000", "there was one window"),
        ("grouping", "", "--set theta=0.9", "no key was heavy in hits.csv"),
        ("grouping", "", "--set instances=1", "no key went to several instances"),
        ("script", "", "--lateness 1h", "nothing was late in readings.csv"),
    ],
)
def test_without_the_cases_that_matter_nothing_is_determined(
    straggler: Straggler, files: Path, room: str, stream: str, more: str, words: str
) -> None:
    if stream:
        lines = "".join(f"{second},1,k\n" for second in stream.split())
        for name in ("stream.csv", "trips.csv"):
            (files / name).write_text(f"event_time,value,car\n{lines}", encoding="utf-8")
        more += " --per task --max-wait 1s" * (room == "watermark")
    conditions = ("--on", "value apart 9") if room == "join" else ()
    done = straggler(*ask(room, *conditions, *more.split()))
    assert done.code == 3, done
    assert words in " ".join(done.out.split())


# -------------------------------------------------------------------------------------- broken


@pytest.mark.parametrize(
    ("room", "system", "sentence", "arrivals"),
    [
        ("slack", f"{OWN}:lost_update", "each pair once: Not every tuple", 3),
        ("slack", f"{OWN}:forgets_late", "the system differs from the simulation: ", 3),
        ("slack", f"{OWN}:raises", "the system raised RuntimeError: no more disk", 1),
        ("watermark", f"{OWN}:literal", "differs from the simulation: ", 9),
        ("join", f"{OWN}:loses_pairs", " is missing.", 4),
        ("join", f"{OWN}:doubles_pairs", " was not expected.", 4),
        ("join", f"{OWN}:miscounts_copies", "are a behaviour of the protocol: Step ", 4),
        ("grouping", f"{OWN}:uniform_if_light", "differs from the simulation: ", 2),
        ("grouping", f"{OWN}:answers_one_less", "answers are those of all tuples: The answer", 2),
        ("script", f"{OWN}:stamps_the_end", "results are what the", 1),
    ],
)
def test_a_wrong_system_leaves_a_small_counterexample_that_can_be_replayed(
    straggler: Straggler, files: Path, room: str, system: str, sentence: str, arrivals: int
) -> None:
    more = ("--per", "task") if room == "watermark" else ()
    done = straggler(*ask(room, *more, *STEPS, system=system))
    assert done.code == 1
    assert "1 of 1 comparison broken" in done.out
    assert sentence in done.out
    (stored,) = (files / "counterexamples").iterdir()
    name = f"counterexamples/{stored.name}"
    assert f"run it again with: straggler replay {name}" in done.out
    record = json.loads(stored.read_text(encoding="utf-8"))
    assert (record["counterexample"], record["system"], record["reference"]) == (1, system, "both")
    assert len(record["workload"]["arrivals"]) <= arrivals
    again = straggler("replay", name, "--trust")
    assert (again.code, again.out.splitlines()[-1]) == (1, "It still fails.")
    mended = straggler("replay", name, "--system", model_of(room))
    assert (mended.code, mended.out) == (0, f"{stored.name} does not fail any more.\n")


# ----------------------------------------------------------------------- which comparisons are made


@pytest.fixture
def two_rooms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let there be two rooms, east and west, with one small input; in the east nothing is right."""
    config = SlackConfig(10, 10, control="fixed", gamma_us=0)
    events = tuple([Event(n, n, "", t, 1.0, t) for n, t in enumerate((1, 2, 9, 3, 12, 30, 11, 40))])

    def room(name: str) -> Room:
        source, arguments = Recording("few", "few", events), Arguments(batches=None, seed=0)
        case = make_case("slack", source, config, "a sum", arguments, batches=3)
        place = ["east", "west"].index(name)
        return replace(
            find_room("slack"),
            name=name,
            cases=lambda *_: iter([case]),
            position=place,
            quick_s=-place,
        )

    @contextmanager
    def open_system(*_: object) -> Iterator[Callable[[Room], System]]:
        yield lambda room: says_nothing() if room.name == "east" else room.reference()

    rooms = [room("east"), room("west")]
    monkeypatch.setattr(diff, "find_rooms", lambda _: rooms)
    monkeypatch.setattr(diff, "open_system", open_system)


@pytest.mark.usefixtures("two_rooms")
def test_a_quick_comparison_begins_with_the_quickest_room(
    straggler: Straggler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diff, "_arguments", lambda args, _room: args)
    done = straggler("diff", "all", "--quick")
    shown = [line for line in done.err.splitlines() if " of 2: " in line]
    assert [line[:11] for line in shown] == ["1 of 2: wes", "2 of 2: eas"]
    assert done.out.index("\neast") < done.out.index("\nwest")
