"""``assert_keeps_promises``, as a test of a user calls it."""

from pathlib import Path

import pytest

from straggler import Trace, Workload, assert_keeps_promises
from straggler.errors import UsageError
from straggler.judging import promises


def right(workload: Workload) -> Trace:
    from model.join.oracle import make_system

    return make_system()(workload)


def test_a_right_system_passes_and_a_silent_one_does_not(tmp_path: Path) -> None:
    assert_keeps_promises(right, kinds="match", folder=tmp_path)
    assert_keeps_promises("model.slack:make_system", room="slack", level="steps", folder=tmp_path)
    with pytest.raises(AssertionError, match=r"(?s)lost.*straggler replay .*MODULE:FACTORY"):
        assert_keeps_promises(lambda _: Trace("silent", ()), kinds="match", folder=tmp_path)
    with pytest.raises(ValueError, match="effort is 'much'; it must be one of dev, ci, nightly"):
        assert_keeps_promises(right, effort="much")
    with pytest.raises(UsageError, match="level is 'all'; it must be one of answers, steps"):
        assert_keeps_promises(right, level="all")
    with pytest.raises(UsageError, match="system is None; it must be a System"):
        assert_keeps_promises(None)  # type: ignore[arg-type]  # the mistake to refuse


def test_a_system_gets_only_what_it_accepts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Workload] = []

    def with_one_query(workload: Workload) -> Trace:
        given.append(workload)
        return right(workload)

    assert_keeps_promises(with_one_query, accepts=has_one_query, folder=tmp_path)
    assert len(given) == 25
    assert all(map(has_one_query, given))
    monkeypatch.setattr(promises, "TRIES", 1)
    with pytest.raises(AssertionError, match=r"accepts none of 25 workloads$"):
        assert_keeps_promises(right, accepts=lambda _: False, folder=tmp_path)


def test_a_counterexample_is_one_that_the_system_accepts(tmp_path: Path) -> None:
    """Other workloads would break for another reason: there the system promises nothing."""
    given: list[Workload] = []

    def silent(workload: Workload) -> Trace:
        given.append(workload)
        return Trace("silent", ())

    def has_two_queries(workload: Workload) -> bool:
        return len(workload.config["queries"]) == 2

    with pytest.raises(AssertionError, match="no pair lost"):
        assert_keeps_promises(silent, kinds="match", accepts=has_two_queries, folder=tmp_path)
    assert len(given) > 2
    assert all(map(has_two_queries, given))


def has_one_query(workload: Workload) -> bool:
    return len(workload.config["queries"]) == 1
