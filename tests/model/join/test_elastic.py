"""Workers come and go on a quiet chain, and every pair still comes out once."""

from collections import Counter
from dataclasses import replace

import pytest

from model.checking.claims import Outcome
from model.join import chain
from model.join.oracle import admission, matches
from model.join.rules import Setup
from model.join.run import SeededRun, run
from model.join.state import Action, ChainState, Lane, Listed, Ranks, Worker, is_quiet, with_worker
from model.join.state_claims import LOST
from model.join.variants import explore
from model.vocabulary import JoinConfig
from model.vocabulary.join import Match
from tests.model.join.strategies import workload

Stores = tuple[Ranks, Ranks]


@pytest.mark.parametrize("seed", range(1, 90))
def test_merges_and_splits_change_no_result(seed: int) -> None:
    case = workload(seed, limited=seed % 2 == 0)
    found = Counter(match[:3] for match in run(case, {"changes": 6}).of(Match))
    assert found == Counter(matches(JoinConfig.from_json(case.config), admission(case)))


def after(state: ChainState, action: Action) -> ChainState:
    setup = SeededRun(workload(1), {"changes": 1}, lambda n: 0).setup
    return chain.after(setup, state, action)[0]


def test_a_split_and_a_merge_keep_the_order_of_tuples() -> None:
    whole = ChainState((Worker(Lane((1, 2, 3)), Lane((4, 5))),), (), (), changes=2)
    parted = after(whole, Action("split", 0, "R", 2))
    assert [(w.r.store, w.s.store) for w in parted.workers] == [((3,), (4, 5)), ((1, 2), ())]
    assert is_quiet(parted)
    assert after(parted, Action("merge", 0)).workers == whole.workers


def test_the_newest_of_s_go_right_with_all_of_r() -> None:
    whole = ChainState((Worker(Lane((1, 2)), Lane((4, 5))),), (), (), changes=1)
    parted = after(whole, Action("split", 0, "S", 1))
    assert [(w.r.store, w.s.store) for w in parted.workers] == [((), (4,)), ((1, 2), (5,))]


def test_a_merged_worker_has_seen_what_either_of_its_parts_has_seen() -> None:
    left, right = (Worker(Lane(wm_us=r), Lane(wm_us=s)) for r, s in ((9, 2), (4, 7)))
    merged = after(ChainState((left, right), ((),), ((),), changes=1), Action("merge", 0)).workers
    assert [(worker.r.wm_us, worker.s.wm_us) for worker in merged] == [(9, 7)]


def test_a_split_that_lowers_no_watermark_loses_a_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    lowered = chain.split_into

    def unlowered(
        setup: Setup, state: ChainState, at: int, left: Stores, right: Stores
    ) -> ChainState:
        worker = state.workers[at]
        parted = lowered(setup, state, at, left, right)
        for n in (at, at + 1):
            r, s = parted.workers[n]
            r, s = r._replace(wm_us=worker.r.wm_us), s._replace(wm_us=worker.s.wm_us)
            parted = with_worker(parted, n, Worker(r, s))
        return parted

    monkeypatch.setattr(chain, "split_into", unlowered)
    verdicts = {each.claim: each.outcome for each in explore("elastic-drop").verdicts}
    assert verdicts[LOST] is Outcome.BROKEN


@pytest.mark.parametrize(("stream", "n", "wm_us"), [("R", 1, (9, 1)), ("S", 1, (2, 9))])
def test_tuples_of_one_part_have_not_passed_the_other_part(
    stream: str, n: int, wm_us: tuple[int, int]
) -> None:
    setup = SeededRun(workload(1), {"changes": 1}, lambda n: 0).setup
    setup = replace(setup, content=Listed((0, 1), (3, 2), lambda _r, _s: 0))
    whole = ChainState((Worker(Lane((0, 1), wm_us=9), Lane((0, 1), wm_us=9)),), (), (), changes=1)
    parted, _ = chain.after(setup, whole, Action("split", 0, stream, n))
    left, right = parted.workers
    assert (left.s.wm_us, right.r.wm_us) == wm_us
    assert (left.r.wm_us, right.s.wm_us) == (9, 9)
