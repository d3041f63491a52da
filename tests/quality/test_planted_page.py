"""Every claim has a planted bug that breaks it, and the page of planted bugs names it."""

from pathlib import Path

import pytest

from straggler.rooms import find_room, room_names
from tests.harness.broken_claims import (
    Broken,
    Claimed,
    all_claims,
    claim_sets,
    name_bug,
    read,
    renew,
    write,
)
from tests.quality.planted_page import RECORD, bugs, claims_without_bug, page
from tests.quality.planted_producers import (
    CANNOT,
    CHANGED,
    JOBS,
    OPERATORS,
    PRODUCERS,
    TIMED,
    producer_of,
)

ROOT = Path(__file__).resolve().parents[2]


def test_every_claim_of_every_room_is_broken_by_a_planted_bug() -> None:
    assert claims_without_bug(read(RECORD)) == []


_FOLLOWS = "a silent stream follows the other one, and makes nothing else late"
_SILENCE = "silence makes late what lies too far behind all sensors, and nothing else"
GAPS = {
    (Claimed(room, claim), producer)
    for room, claim, producers in (
        ("join", _FOLLOWS, (JOBS, CHANGED)),
        ("script", _SILENCE, (JOBS, OPERATORS, CHANGED)),
        ("slack", "exact means all rows", (JOBS,)),
        ("watermark", "exact means all rows", (JOBS,)),
        ("watermark", "an idle operator holds nothing back", (JOBS,)),
    )
    for producer in producers
}
"""Claims of which no bug of a producer is recorded yet; the page shows them as gaps."""


def test_a_bug_breaks_every_claim_in_every_producer_that_can_break_it() -> None:
    places = {(claim, producer) for claim in all_claims() for producer in PRODUCERS}
    for each in CANNOT:
        places -= {(Claimed(each.room, claim), each.producer) for claim in each.claims}
    assert places.difference(bugs(read(RECORD))) == GAPS


@pytest.mark.parametrize("room", room_names())
def test_examples_of_planted_bugs_arrive_in_order(room: str) -> None:
    for name, variant in find_room(room).explorer.variants.items():
        arrivals_us = [event.arrival_us for event in variant.example.arrivals]
        assert arrivals_us == sorted(arrivals_us), name


def test_recorded_bugs_break_claims_that_exist_in_tests_that_exist() -> None:
    known = set(all_claims())
    for each in read(RECORD):
        assert (each.room, each.claim) in known, f"{RECORD.name} has to be recorded anew"
        file, _, test = each.test.partition("::")
        assert f"def {test.partition('[')[0]}(" in (ROOT / file).read_text("utf-8"), each


def test_no_bug_breaks_a_claim_that_its_producer_cannot_break() -> None:
    known, broken = set(all_claims()), bugs(read(RECORD))
    for each in CANNOT:
        assert each.producer in PRODUCERS
        for claim in each.claims:
            assert (each.room, claim) in known, each
            assert ((each.room, claim), each.producer) not in broken, each


def test_claims_that_no_operator_can_break_need_steps_that_none_records() -> None:
    for each in CANNOT:
        if each.producer == OPERATORS:
            recorded = find_room(each.room).in_process_step_types
            claims = {claim.name: claim for own in claim_sets()[each.room] for claim in own.claims}
            for name in each.claims:
                assert {word for group in claims[name].needs for word in group}.difference(recorded)


TEST = "tests/quality/test_script_sim.py::test_a_variant"
OTHER = "tests/quality/test_slack_claims.py::test_a_change"


def test_the_page_names_claims_without_a_planted_bug(tmp_path: Path) -> None:
    record = tmp_path / "record.json"
    first, *others = all_claims()
    write(record, [Broken(*each, f"{TEST}[z]", 0.04, ("z",)) for each in others])
    assert claims_without_bug(read(record)) == [f"{first.room}: {first.claim}"]
    text = page(record)
    assert f"**{len(others)} of {len(others) + 1} claims" in text
    words = " ".join(text.split())
    assert f"has bugs that break {len(others)} claims, cannot break 0, and has 1 gap." in words
    assert f"| {first.claim} |  |" in text
    assert f"| {others[0].claim} | {TIMED} | z | `test_script_sim.py::test_a_variant` |" in text


def test_a_bug_counts_once_for_each_claim_and_producer() -> None:
    known = all_claims()[0]
    tests = (f"{TEST}[z]", f"{TEST}_again[z]", f"{TEST}[y]", f"{OTHER}[z]")
    found = [Broken(*known, test, 0.1, (name_bug(test),)) for test in tests]
    assert [producer_of(test) for test in tests] == [TIMED, TIMED, TIMED, CHANGED]
    assert bugs(found) == {(known, TIMED): 2, (known, CHANGED): 1}


def test_the_quickest_test_of_each_function_is_kept_with_all_bugs(tmp_path: Path) -> None:
    record, known = tmp_path / "record.json", all_claims()[0]
    tests = {"a.py::slow": 2.0, "a.py::quick[1]": 0.44, "a.py::quick[2]": 0.26}
    write(record, [Broken(*known, test, s, (name_bug(test),)) for test, s in tests.items()])
    assert read(record) == [
        Broken(*known, "a.py::quick[2]", 0.3, ("2", "1")),
        Broken(*known, "a.py::slow", 2.0, ("slow",)),
    ]


def test_a_record_in_parts_keeps_what_did_not_run(tmp_path: Path) -> None:
    record, known = tmp_path / "record.json", all_claims()[0]
    first = [Broken(*known, test, 1.0, ("b",)) for test in ("a.py::kept[1]", "a.py::ran[1]")]
    renew(record, (), first)
    again = Broken(*known, "a.py::ran[2]", 2.0, ("c",))
    renew(record, {"a.py::ran", "a.py::found_nothing"}, [again])
    assert read(record) == [first[0], again]
