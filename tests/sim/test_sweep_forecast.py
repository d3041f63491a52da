"""Times of jobs: in which order they are done, and how long the rest will take."""

import json
from pathlib import Path

import pytest

from sim.sweep.forecast import TIMES, Forecast, kind_of, known_times, longest_first, time_of
from sim.sweep.jobs import Done, Job, jobs_of
from sim.sweep.runs import runs_of
from tests.sim.experiments import small


def jobs(name: str = "small", **other: object) -> list[Job]:
    experiment = small(name=name, **other)
    return list(jobs_of(experiment, runs_of(experiment, "quick", 0)))


def done(job: Job, seconds: float) -> Done:
    return Done(job, (), "", seconds, 1.0)


def test_times_of_other_seeds_and_versions_are_known_by_kind(tmp_path: Path) -> None:
    first, second, third, *_ = jobs()
    assert kind_of(first) == kind_of(second._replace(seed=7, addresses=("of other code",)))
    assert kind_of(first) != kind_of(third)
    lines = [json.dumps(time_of(done(job, seconds))) for job, seconds in ((first, 3), (third, 2))]
    lines += ["", "[]", "{", '{"kind": "x"}', '{"kind": "y", "seconds": null}', lines[0][:20]]
    lines += [f'{{"kind": "z", "seconds": {seconds}}}' for seconds in ("1e999", "NaN", "9" * 400)]
    lines.append(json.dumps(time_of(done(second, 5))))
    (tmp_path / TIMES).write_text("\n".join(lines), encoding="utf-8")
    assert known_times(tmp_path) == {kind_of(first): 5, kind_of(third): 2}
    assert known_times(tmp_path / "nowhere") == {}


def test_the_longest_comes_first_in_its_experiment() -> None:
    mine, others = jobs(), jobs("other", base={"keys": 7, "tuples": 400, "window_tuples": 100})
    known = {kind_of(mine[2]): 1.0, kind_of(mine[4]): 9.0, kind_of(others[0]): 99.0}
    ordered = longest_first([*mine, *others], known)
    unknown = [job for job in mine if kind_of(job) not in known]
    assert ordered[:8] == [*unknown, *mine[4:6], *mine[2:4]]
    assert {job.experiment for job in ordered[8:]} == {"other"}
    assert longest_first(mine, {}) == mine


def test_the_forecast_uses_known_times() -> None:
    """Eight jobs run two at a time: two take 6 s, as known before, and the others take 2 s."""
    asked = jobs()
    forecast = Forecast(asked, {kind_of(asked[0]): 6.0})
    assert forecast.left_s(1.0) == 0.0
    left = []
    for number, job in enumerate(asked):
        forecast.note(done(job, 6.0 if number < 2 else 2.0))
        left.append(forecast.left_s((6.0 * min(2, number + 1) + 2.0 * max(0, number - 1)) / 2))
    assert left[2:] == pytest.approx([5.0, 4.0, 3.0, 2.0, 1.0, 0.0])


def test_jobs_of_unknown_length_count_like_finished_ones() -> None:
    mine, others = jobs(), jobs("other")
    forecast = Forecast([*mine, *others], {})
    forecast.note(done(mine[0], 4.0))
    assert forecast.left_s(4.0) == pytest.approx(15 * 4.0)
    forecast.note(done(others[0], 2.0))
    assert forecast.left_s(6.0) == pytest.approx(7 * 4.0 + 7 * 2.0)
