"""Promises 1 to 5 of docs/slack.md on the model.

Arrivals come from simulated networks; see ``straggler/strategies/streams.py``.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.checking.claims import Outcome
from model.slack.scopes import explore
from model.vocabulary import Fault, System, Trace, Workload
from model.vocabulary.slack import Judged
from model.vocabulary.windows import Correction, Final, Late, Rejected, Result
from properties.stream_packs import collect
from straggler.rooms import find_room
from straggler.strategies.streams import CUTS_MAX, cases, configs, cuts, reordered

CASES_FOR_CRASHES = 150


def unbatched(trace: Trace) -> list[object]:
    """Return the steps that may not depend on the cut into micro-batches."""
    # A pair that a forgotten redelivery finds late again is one step in one batch, two in two.
    late = {step._replace(batch=0) for step in trace.of(Late)}
    steps = (trace.of(Result), trace.of(Judged), trace.of(Rejected))
    unnumbered = [repr(step._replace(batch=0)) for kind in steps for step in kind]
    return [*sorted(unnumbered), *sorted(late), *answers(trace)]


def answers(trace: Trace) -> list[tuple[int, int, str, float, int, bool]]:
    """Return the final answers without the numbers of their revisions."""
    return [(*final[:5], final.exact) for final in trace.of(Final)]


@given(case=cases(), data=st.data())
def test_cuts_change_no_answer(system: System, case: Workload, data: st.DataObject) -> None:
    # With a flush, because the cuts decide which corrections are made before the end.
    flushed = case.with_(flush=True)
    recut = flushed.with_(cuts=data.draw(cuts(len(case.arrivals))))
    for run in (system, find_room("slack").in_process):
        assert unbatched(run(recut)) == unbatched(run(flushed))


@given(pair=configs().flatmap(reordered))
def test_another_arrival_order_changes_no_final_answer(
    system: System, pair: tuple[Workload, Workload]
) -> None:
    one, other = pair
    assert answers(system(one)) == answers(system(other))


FAULTS = st.builds(Fault, st.sampled_from(["restart", "kill"]), st.integers(0, CUTS_MAX + 1))


@given(case=cases(), fault=FAULTS)
def test_a_crash_changes_no_final_answer(system: System, case: Workload, fault: Fault) -> None:
    crashed = case.with_(faults=(fault,))
    assert answers(system(crashed)) == answers(system(case))


def test_crashes_hit_corrections(seed: int) -> None:
    hit = [
        fault
        for case, fault in collect(st.tuples(cases(), FAULTS), CASES_FOR_CRASHES, seed)
        if any(
            step.batch == fault.at for step in find_room("slack").reference()(case).of(Correction)
        )
    ]
    assert {fault.kind for fault in hit} == {"restart", "kill"}, "no crash was near a correction"
    assert len({fault.at for fault in hit}) > 1, "every crash came at the same time"


GOLDEN = {"small": (12_765, 41_726), "conformal": (1_568, 2_631), "pd": (1_568, 2_631)}
"""States and transitions of each scope: they change with every change of the rules.

The scope ``redelivery`` is as large as all of them together; tests/model/slack explores it.
"""


@pytest.mark.parametrize("scope", GOLDEN)
def test_every_behaviour_of_a_small_scope_keeps_the_promises(scope: str) -> None:
    exploration = explore(scope)
    assert (exploration.unique_states, exploration.transitions) == GOLDEN[scope]
    assert exploration.cut is None
    for verdict in exploration.verdicts:
        assert verdict.outcome is Outcome.HOLDS, (verdict.claim, verdict.witness)
