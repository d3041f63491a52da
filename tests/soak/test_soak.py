"""A short soak at night, and mistakes that its oracles catch.

Run as a program, this file is a driver with planted mistakes. The file ``planted`` in the folder of
a life names the mistake of its sink: ``twice`` adds what it is given to what it has, instead of
replacing it; ``lost`` leaves out a row if it is called again.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.soak import driver, faults, rooms
from tests.soak.__main__ import CLUSTER
from tests.soak.driver import DriverProcess, needs_proc
from tests.soak.faults import Plan
from tests.soak.life import Drivers, Life
from tests.soak.oracles import LOST, ORACLES, TWICE, Arrival, Finding
from tests.soak.tampering import TAMPERINGS


class PlantedSink(rooms.Handed):
    """A sink that is not idempotent if the folder says so."""

    def write(self, batch: int, content: Any) -> None:
        """Write the content for a micro-batch."""
        planted = self._folder.parent.parent / "planted"
        mistake = planted.read_text(encoding="utf-8") if planted.exists() else ""
        before = self._folder / f"{batch}.json"
        if mistake and before.exists():
            held = json.loads(before.read_text(encoding="utf-8"))
            content = held + content if mistake == "twice" else content[1:]
        super().write(batch, content)


@pytest.fixture(scope="module")
def drivers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drivers]:
    folder = tmp_path_factory.mktemp("driver")
    started = Drivers(lambda: DriverProcess("local[4,4]", folder, __name__))
    started.active.wait_until_ready()
    yield started
    started.end()


@contextmanager
def living(room: str, folder: Path, drivers: Drivers, seed: int) -> Iterator[Life]:
    """Give a life of a room, which ends together with its folder."""
    life = Life(room, folder, drivers, Random(seed))
    try:
        yield life
    finally:
        life.stop()
        life.remove()


PLANS = [
    (faults.REDELIVERED, faults.IN_BATCH),
    (faults.COMMIT_LOST, faults.IDLE),
    (faults.WORKER_KILLED, faults.IN_BATCH),
    (faults.DISK_FULL, faults.AFTER_SINK),
    (faults.COMMIT_LOST, faults.IDLE),
    (faults.WORKER_KILLED, faults.FLUSHING),
]


@needs_proc
@pytest.mark.long
@pytest.mark.parametrize(
    ("planted", "expected", "mounts"),
    [("", "", True), ("", "", False), ("twice", TWICE, True), ("lost", LOST, True)],
)
def test_a_soak_survives_faults_and_catches_a_sink_that_does_not(
    drivers: Drivers,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    planted: str,
    expected: str,
    mounts: bool,
) -> None:
    if not mounts:
        monkeypatch.setattr(faults, "MOUNT", "/bin/false")
    found: list[Finding] = []
    with living("grouping", tmp_path / "life", drivers, 3) as life:
        if planted:
            (tmp_path / "life" / "planted").write_text(planted, encoding="utf-8")
        for number, (kind, moment) in enumerate(PLANS):
            outcome = life.undergo(Plan(number, "grouping", kind, moment))
            assert outcome.moment == moment
            assert outcome.struck
            assert outcome.checked
            found += outcome.findings
            if found:
                break
    assert {each.kind for each in found} == ({expected} if expected else set())
    assert not (tmp_path / "life").exists()


KILLS = [
    (faults.DRIVER_KILLED, faults.IN_BATCH),
    (faults.EXECUTOR_KILLED, faults.IN_BATCH),
    (faults.DRIVER_KILLED, faults.AFTER_SINK),
    (faults.WORKER_KILLED, faults.IN_BATCH),
    (faults.DRIVER_KILLED, faults.STARTING),
    (faults.EXECUTOR_KILLED, faults.FLUSHING),
]


@needs_proc
@pytest.mark.long
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("room", ORACLES)
def test_answers_are_exact_though_drivers_executors_and_workers_are_killed(
    tmp_path: Path, seed: int, room: str
) -> None:
    both = Drivers(lambda: DriverProcess(CLUSTER, tmp_path / "driver"))
    in_turn = {"slack": faults.CORRECTING, "join": faults.RESIZING}
    more = [(faults.DRIVER_KILLED, in_turn[room])] if room in in_turn else []
    try:
        with living(room, tmp_path / "life", both, seed) as life:
            for number, (kind, moment) in enumerate((*more, *KILLS)):
                outcome = life.undergo(Plan(number, room, kind, moment))
                assert outcome.findings == []
                assert outcome.struck
                assert outcome.checked
    finally:
        both.end()
    assert life.ended


@needs_proc
@pytest.mark.long
@pytest.mark.timeout(1_800)
def test_changes_of_files_are_refused_or_harm_nothing(tmp_path: Path) -> None:
    both = Drivers(lambda: DriverProcess("local[4,4]", tmp_path / "driver"))
    both.active.wait_until_ready()
    found = list[str]()
    try:
        with living("watermark", tmp_path / "life", both, 5) as life:
            for number, kind in enumerate(TAMPERINGS):
                outcome = life.undergo(Plan(number, "watermark", kind, faults.IDLE))
                assert outcome.findings == []
                found.append(outcome.struck)
    finally:
        both.end()
    assert all(found)
    refused = [each.endswith(", refused") for each in found]
    assert refused[2:] == [False, True, True], found


def test_each_oracle_finds_what_is_lost_and_what_is_twice() -> None:
    r, s = (Arrival(n, 1, "a", 1_000_000_000, float(n), "RS"[n]) for n in range(2))
    pairs = [["near", 1, 1], ["same", 1, 1]]
    good = {"rows": pairs, "handed": pairs, "shed": [], "complete_us": 0}
    for change, expected in (
        ({}, []),
        ({"rows": pairs[:1], "handed": pairs[:1]}, [LOST]),
        ({"rows": [*pairs, pairs[0]]}, [TWICE]),
        ({"handed": [*pairs, pairs[0]]}, [TWICE]),
        ({"handed": pairs[:1]}, [LOST]),
        ({"rows": [], "handed": [], "shed": [["R", 0]]}, []),
    ):
        oracle = ORACLES["join"]("join")
        found = oracle.check([r, s], {**good, **change}, ended=True)
        assert [each.kind for each in found] == expected, change
    oracle = ORACLES["join"]("join")
    assert not oracle.check([r, s], good, ended=False)
    gone = oracle.check([r, s], {**good, "rows": [], "handed": []}, ended=False)
    assert {each.kind for each in gone} == {LOST}, "it was there before"


def test_the_oracle_of_windows_knows_exact_answers_only() -> None:
    arrivals = [Arrival(n, n, "a", 1_000_900_000, float(n), "") for n in (1, 2)]
    starts = range(1_000_000_000, 1_000_900_001, 200_000)
    rows = [["", "a", start, 3.0, 2, 0, 2, "exact"] for start in starts]
    good = {"rows": rows, "handed": [row[:6] for row in rows]}
    for change, expected in (
        ({}, set()),
        ({"rows": rows[1:], "handed": good["handed"][1:]}, {LOST}),
        ({"rows": [[*rows[0][:4], 1, 0, 1, "exact"], *rows[1:]]}, {LOST}),
        ({"rows": [[*rows[0][:4], 3, 0, 3, "exact"], *rows[1:]]}, {TWICE, LOST}),
        ({"rows": [[*rows[0][:7], "provisional"], *rows[1:]]}, {LOST}),
        ({"handed": good["handed"][1:]}, {LOST}),
    ):
        found = ORACLES["slack"]("slack").check(arrivals, {**good, **change}, ended=True)
        assert {each.kind for each in found} == expected, change


if __name__ == "__main__":
    vars(rooms)["Handed"] = PlantedSink
    driver.main(sys.argv[1])
