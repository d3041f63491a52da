"""Failing packs: whether the failure is found, made small, confirmed and stored. No Spark here."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from model.slack.variants import VARIANTS
from model.vocabulary import SlackConfig, System, Trace, Workload
from model.vocabulary.windows import Correction
from properties import stream_packs
from straggler.judging.counterexamples import Counterexample
from straggler.judging.systems import SPARK
from straggler.rooms import Room, find_room
from straggler.strategies.streams import cases

CONFIG = SlackConfig(9_000, 4_000, tasks=2, gamma_us=9_000)


@cache
def drawn_pack() -> stream_packs.StreamPack:
    return stream_packs.draw_pack(CONFIG, 40, seed=5)


def with_pipeline(system: System, in_process: System) -> Room:
    """Return the room with other systems in place of Spark and of its state operator."""
    slack = find_room("slack")

    def stream_part(workload: Workload) -> Trace:
        steps = in_process(workload).steps()
        return Trace("operator", [s for s in steps if isinstance(s, slack.in_process_step_types)])

    return replace(slack, spark=lambda: system, in_process=stream_part)


def traces(system: System) -> dict[str, Trace]:
    return {name: system(case) for name, case in drawn_pack().cases.items()}


def test_examples_follow_their_seed() -> None:
    assert stream_packs.collect(cases(), 20, 1) == stream_packs.collect(cases(), 20, 1)
    assert stream_packs.collect(cases(), 20, 1) != stream_packs.collect(cases(), 20, 2)


def test_a_pack_holds_different_streams_for_one_query() -> None:
    assert len(drawn_pack().cases) == 40
    assert (
        len({(case.arrivals, case.cuts, case.flush) for case in drawn_pack().cases.values()}) == 40
    )
    assert {tuple(case.config.items()) for case in drawn_pack().cases.values()} == {
        tuple(CONFIG.to_json().items())
    }


def test_a_pack_holds_dense_streams_of_several_sizes_among_sparse_ones() -> None:
    pack = stream_packs.draw_pack(CONFIG, 8, seed=5, dense=3)
    sizes = [stream_packs.largest_window(CONFIG, case) for case in pack.cases.values()]
    dense, sparse = sizes[:3], sizes[3:]
    assert len(set(dense)) == 3
    assert min(dense) >= 100
    assert len(sparse) == 5
    assert max(sparse) < 100


def test_a_right_system_fails_nowhere() -> None:
    slack = find_room("slack")
    assert not stream_packs.list_failing(slack, drawn_pack().cases, traces(slack.reference()))


def test_a_failure_of_the_stream_is_shrunk_in_process_and_confirmed(tmp_path: Path) -> None:
    runs: list[Workload] = []
    buggy = VARIANTS["lost_update"].make_system()

    def counting(workload: Workload) -> Trace:
        runs.append(workload)
        return buggy(workload)

    slack = with_pipeline(counting, buggy)
    broken = stream_packs.list_failing(slack, drawn_pack().cases, traces(buggy))
    assert broken
    told = stream_packs.report(slack, drawn_pack(), broken, tmp_path)
    assert f"{len(broken)} of 40 cases are broken" in told
    assert "one writer" in told
    assert "straggler replay" in told
    (stored,) = tmp_path.iterdir()
    found = Counterexample.load(stored)
    assert found.system == SPARK
    assert isinstance(found.given, Workload)
    assert len(found.given.arrivals) <= 3
    assert len(runs) == 1, "Spark is for confirming, and that says what is broken"


def test_a_failure_of_corrections_alone_is_shrunk_with_the_whole_pipeline(tmp_path: Path) -> None:
    buggy = VARIANTS["clears_everything"].make_system()
    slack = with_pipeline(buggy, find_room("slack").reference())
    broken = stream_packs.list_failing(slack, drawn_pack().cases, traces(buggy))
    assert broken
    stream_packs.report(slack, drawn_pack(), broken, tmp_path)
    found = Counterexample.load(next(tmp_path.iterdir()))
    assert isinstance(found.given, Workload)
    assert buggy(found.given).of(Correction)
    assert len(found.given.arrivals) <= 4
    assert any("wrong answers are pending" in sentence for sentence in found.broken)


def test_a_failure_that_needs_its_pack_is_stored_as_it_is(tmp_path: Path) -> None:
    reference = find_room("slack").reference()
    slack = with_pipeline(reference, reference)
    wrong = {**traces(reference), "case-7": Trace("spark", ())}
    broken = stream_packs.list_failing(slack, drawn_pack().cases, wrong)
    assert list(broken) == ["case-7"]
    told = stream_packs.report(slack, drawn_pack(), broken, tmp_path)
    assert "A second run alone breaks nothing" in told
    found = Counterexample.load(next(tmp_path.iterdir()))
    assert isinstance(found.given, Workload)
    assert found.given.arrivals == drawn_pack().cases["case-7"].arrivals


@pytest.mark.parametrize("name", ["a", "case-1"])
def test_a_counterexample_is_read_back_as_it_was(tmp_path: Path, name: str) -> None:
    workload = drawn_pack().cases["case-1"].with_(name=name)
    written = Counterexample("m:f", workload, ("result",), ("it broke", "[0, 4) twice"))
    path = written.store(tmp_path / "new")
    assert Counterexample.load(path) == written
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) > len(workload.arrivals), "one line an arrival"
