"""The fixture ``straggler_job`` and its marker, with a judge that only notes what it is asked."""

from collections.abc import Callable
from typing import Any

import pytest

import straggler
from model.checking.claims import Outcome, Verdict
from straggler import pytest_plugin
from straggler.jobs.plans import EXACT
from straggler.jobs.report import JobReport
from tests.jobs.written_jobs import minutes

pytestmark = pytest.mark.straggler_job(schema="at timestamp", event_time="at", seed=1)


@pytest.fixture(name="spark")
def session_of_a_user() -> str:
    return "a session"


def judge_all(monkeypatch: pytest.MonkeyPatch, outcome: Outcome) -> dict[str, Any]:
    """Let all jobs have one verdict, and return what the judge is asked."""
    asked: dict[str, Any] = {}

    def judge(_: object, spark: object, **given: object) -> JobReport:
        asked.update(given, spark=spark)
        return JobReport("minutes", (Verdict(EXACT, outcome, "that is why"),), 0, 1)

    monkeypatch.setattr("straggler.jobs.api.judge_job", judge)
    return asked


@pytest.mark.straggler_job(seed=2, mode="update")
def test_a_job_is_judged_as_markers_and_call_say_in_the_session_of_a_fixture(
    straggler_job: Callable[..., JobReport], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = judge_all(monkeypatch, Outcome.HOLDS)
    straggler_job(minutes, mode="complete")
    marked = {"schema": "at timestamp", "event_time": "at", "seed": 2}
    assert asked == {**marked, "mode": "complete", "spark": "a session"}
    straggler_job(minutes, "another session")
    assert (asked["spark"], asked["mode"]) == ("another session", "update")
    monkeypatch.setattr(pytest_plugin, "SESSIONS", ("no_such_fixture",))
    straggler_job(minutes)
    assert asked["spark"] is None


def test_a_job_that_is_broken_or_undetermined_fails_the_test(
    straggler_job: Callable[..., JobReport], monkeypatch: pytest.MonkeyPatch
) -> None:
    judge_all(monkeypatch, Outcome.BROKEN)
    with pytest.raises(straggler.JobBroken, match="that is why"):
        straggler_job(minutes, allow_undetermined=True)
    judge_all(monkeypatch, Outcome.UNDETERMINED)
    with pytest.raises(straggler.JobUndetermined, match="that is why"):
        straggler_job(minutes)
    assert straggler_job(minutes, allow_undetermined=True).outcome is Outcome.UNDETERMINED
