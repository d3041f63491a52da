"""Every claim has a planted bug that breaks it, and the page of planted bugs names it."""

from pathlib import Path

import pytest

from properties.rooms import find_room, room_names
from tests.harness.broken_claims import Broken, all_claims, read, write
from tests.quality.planted_page import RECORD, claims_without_bug, page

ROOT = Path(__file__).resolve().parents[2]


def test_every_claim_of_every_room_is_broken_by_a_planted_bug() -> None:
    assert claims_without_bug(read(RECORD)) == []


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


def test_the_page_names_claims_without_a_planted_bug(tmp_path: Path) -> None:
    record = tmp_path / "record.json"
    first, *others = all_claims()
    write(record, [Broken(*each, "tests/quality/test_x.py::test_y[z]", 0.04) for each in others])
    assert claims_without_bug(read(record)) == [f"{first.room}: {first.claim}"]
    assert f"**{len(others)} of {len(others) + 1} claims" in page(record)


def test_the_quickest_test_of_each_file_is_kept(tmp_path: Path) -> None:
    record, known = tmp_path / "record.json", all_claims()[0]
    tests = {"a.py::slow": 2.0, "a.py::quick[1]": 0.26, "a.py::quick[2]": 0.34, "b.py::other": 1.0}
    write(record, [Broken(*known, test, seconds) for test, seconds in tests.items()])
    assert {each.test: each.seconds for each in read(record)} == {
        "a.py::quick[1]": 0.3,
        "b.py::other": 1.0,
    }
