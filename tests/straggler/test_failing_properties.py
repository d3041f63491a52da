"""Failures of properties are found, made small, confirmed and stored. No Spark here."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings

from model.slack.variants import VARIANTS
from model.vocabulary import SlackConfig, System, Trace, Workload
from properties import fixtures, stream_packs
from straggler.judging.counterexamples import Counterexample
from straggler.judging.systems import SPARK
from straggler.rooms import Room, find_room

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


def test_the_first_lines_of_a_run_repeat_it(request: pytest.FixtureRequest, seed: int) -> None:
    header = fixtures.pytest_report_header(request.config)
    profile = settings.get_current_profile_name()
    assert header == f"straggler: --hypothesis-profile={profile} --hypothesis-seed={seed}"
