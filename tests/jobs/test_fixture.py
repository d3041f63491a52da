"""The fixture ``straggler_job`` and its marker, with a judge that only notes what it is asked."""

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

import straggler
from model.checking.claims import Outcome, Verdict
from straggler import pytest_plugin
from straggler.jobs.plans import EXACT
from straggler.jobs.report import JobReport
from tests.jobs.written_jobs import minutes

pytestmark = pytest.mark.straggler_job(schema="at timestamp", event_time="at", seed=1)
Check: TypeAlias = Callable[..., JobReport]
Judge: TypeAlias = Callable[[Outcome], dict[str, Any]]


@pytest.fixture(name="spark")
def session_of_a_user() -> str:
    return "a session"


@pytest.fixture(name="judge")
def noting_judge(monkeypatch: pytest.MonkeyPatch) -> Judge:
    """Return a function that says what all jobs are judged to be, and what the judge was asked."""

    def be(outcome: Outcome) -> dict[str, Any]:
        asked: dict[str, Any] = {}

        def judge(*job_and_session: object, **given: object) -> JobReport:
            asked.update(given, both=job_and_session)
            return JobReport("minutes", (Verdict(EXACT, outcome, "that is why"),), 0, 1)

        monkeypatch.setattr("straggler.jobs.api.judge_job", judge)
        return asked

    return be


@pytest.mark.straggler_job(seed=2, lateness="1 second", mode="update")
def test_a_job_is_judged_as_the_markers_and_the_call_say(
    straggler_job: Check, judge: Judge
) -> None:
    asked = judge(Outcome.HOLDS)
    straggler_job(minutes, mode="complete")
    assert asked == {
        "both": (minutes, "a session"),
        "schema": "at timestamp",
        "event_time": "at",
        "seed": 2,
        "lateness": "1 second",
        "mode": "complete",
    }


def test_a_session_is_that_of_the_call_or_of_a_fixture(
    straggler_job: Check, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = judge(Outcome.HOLDS)
    straggler_job(minutes, "another session")
    assert asked["both"][1] == "another session"
    monkeypatch.setattr(pytest_plugin, "SESSIONS", ("no_such_fixture",))
    straggler_job(minutes)
    assert asked["both"][1] is None


def test_a_job_that_is_broken_or_undetermined_fails_the_test(
    straggler_job: Check, judge: Judge
) -> None:
    judge(Outcome.BROKEN)
    with pytest.raises(straggler.JobBroken, match=r"ends exact +broken +that is why"):
        straggler_job(minutes, allow_undetermined=True)
    judge(Outcome.UNDETERMINED)
    with pytest.raises(straggler.JobUndetermined, match=r"ends exact +undetermined +that is why"):
        straggler_job(minutes)
    report = straggler_job(minutes, allow_undetermined=True)
    assert report.outcome is Outcome.UNDETERMINED
