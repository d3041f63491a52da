"""Promise 5 of docs/slack.md: the operator in process does what the model does.

``test_spark.py`` does the same on Spark.
"""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.slack.variants import VARIANTS
from model.vocabulary import Workload
from properties.stream_packs import collect
from spark_impl.slack.retained_values import RetainedValues
from straggler.rooms import find_room
from straggler.strategies.streams import configs, cuts, workloads
from tests.properties.slack.test_model import NEEDED, unbatched

SLACK = find_room("slack")
CASES = 60
"""Number of drawn cases that together have to contain every interesting one."""
FROM_VALUES = configs(["sum", "avg"], ["conformal"]).filter(lambda config: config.needs_values)
"""Queries that guess judgements ahead, and whose requirements depend on values."""
DRAWN = (configs() | FROM_VALUES).flatmap(workloads)
NOT_IN_PROCESS = {"clears_everything", "clears_first", "gamma_only", "rejected_rows_do_not_matter"}
"""Planted bugs of corrections and final answers, which do not run in process."""


def differences(case: Workload) -> str:
    """Return the differences between operator and model, one sentence a line."""
    expected, observed = SLACK.reference()(case), SLACK.in_process(case)
    found = SLACK.compare(case, expected, observed, SLACK.in_process_step_types)
    return "\n".join(found.sentences) if found.mismatches else ""


@given(DRAWN)
def test_the_operator_does_what_the_model_does(case: Workload) -> None:
    assert not differences(case)


@given(case=DRAWN, data=st.data())
def test_cuts_change_nothing(case: Workload, data: st.DataObject) -> None:
    recut = case.with_(cuts=data.draw(cuts(len(case.arrivals))))
    assert unbatched(SLACK.in_process(recut)) == unbatched(SLACK.in_process(case))


def test_the_drawn_cases_include_every_interesting_one(seed: int) -> None:
    guards = Counter[str]()
    for case in collect(DRAWN, CASES, seed):
        guards.update(SLACK.check(case, SLACK.reference()(case)).guards)
    for guard in NEEDED:
        assert guards[guard], f"there were no {guard}"


@pytest.mark.parametrize("bug", sorted({*VARIANTS} - NOT_IN_PROCESS))
def test_comparison_sees_every_planted_bug(bug: str) -> None:
    case = VARIANTS[bug].example
    observed, wrong = SLACK.in_process(case), VARIANTS[bug].make_system()(case)
    assert SLACK.compare(case, wrong, observed, SLACK.in_process_step_types).mismatches


def test_values_that_a_wrong_guess_leaves_behind_are_noticed(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(RetainedValues, "undo_to", lambda _self, _mark: None)
    assert any(map(differences, collect(FROM_VALUES.flatmap(workloads), CASES // 2, seed)))
