"""The schedule of interrupted queries, tested with drivers that are never started."""

from collections.abc import Mapping
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import cast

import pytest

from model.vocabulary import Workload
from tests.harness import background_kills
from tests.harness.background_kills import (
    FIXTURES,
    KillPlan,
    Query,
    Subject,
    kill_drivers,
    run_in_background,
)
from tests.harness.driver_kills import Kill, needs_proc

ROOMS = ("slack", "watermark", "slack")


def workload_of(number: int, seed: int) -> Workload:
    return Workload(ROOMS[number % len(ROOMS)], (), {}, seed=seed, name=f"query-{number}")


def interrupted(
    kills_of: Mapping[int, int], wanted: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> list[int]:
    """Return the numbers of the queries that run if query n is killed ``kills_of[n]`` times."""

    def kill(_subject: Subject, parent: Path, workload: Workload, _stop: Event) -> Query:
        number = int(workload.name.removeprefix("query-"))
        return Query(parent, workload, [Kill("begin", True)] * kills_of.get(number, 0))

    monkeypatch.setattr(background_kills, "_kill_and_finish", kill)
    subject = Subject("", lambda *_: None, workload_of)
    queries = kill_drivers(KillPlan(subject, 0, wanted), folder, Event())
    return [int(query.workload.name.removeprefix("query-")) for query in queries]


@pytest.mark.parametrize(
    ("wanted", "kills_of", "numbers"),
    [
        (10, {0: 5, 1: 5}, [0, 1]),
        (10, {0: 9, 1: 4, 4: 1}, [0, 1, 4, 7]),
        (10, {0: 10, 7: 5}, [0, 1, 4, 7]),
        (10, {1: 5, 2: 2, 3: 3}, [0, 1, 2, 3]),
        (10, {0: 5, 7: 5}, [0, 1, 4, 7]),
        (20, {0: 10, 1: 4, 4: 4, 7: 2}, [0, 1, 4, 7]),
        (2, {0: 5, 4: 1}, [0, 1, 4]),
        (2, {0: 5}, [0, 1, 4]),
    ],
)
def test_rooms_are_killed_alike_and_only_as_often_as_is_wanted(
    wanted: int,
    kills_of: Mapping[int, int],
    numbers: list[int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert interrupted(kills_of, wanted, tmp_path, monkeypatch) == numbers


@needs_proc
@pytest.mark.parametrize(("is_alone", "at_once"), [(True, ["killed_chains"]), (False, [])])
def test_kills_begin_at_once_only_if_one_process_runs_all_tests(
    is_alone: bool,
    at_once: list[str],
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun: list[str] = []

    def kill(plan: KillPlan, _folder: Path, _stop: Event) -> list[Query]:
        begun.append(plan.subject.driver)
        return []

    monkeypatch.setattr(background_kills, "kill_drivers", kill)
    monkeypatch.setattr(background_kills, "_uses", lambda _item, name: name == "killed_chains")
    config = SimpleNamespace() if is_alone else SimpleNamespace(workerinput={})
    process = cast("pytest.FixtureRequest", SimpleNamespace(config=config, session=request.session))
    subjects = {name: Subject(name, lambda *_: None, workload_of) for name in FIXTURES}
    plans = {name: KillPlan(subject, 0, 1) for name, subject in subjects.items()}
    for begin in run_in_background(plans, process, tmp_path_factory):
        begin("killed_queries").result()
        assert begin("killed_queries").result() == []
    assert begun == [*at_once, "killed_queries"]
