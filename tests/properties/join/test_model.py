"""Promises of docs/join.md on the model.

Arrivals come from simulated networks; see ``straggler/strategies/join.py``.
"""

from hypothesis import given
from hypothesis import strategies as st

from model.vocabulary import JoinConfig, System, Trace, Workload
from model.vocabulary.join import Match, Rejected
from straggler.strategies.join import cases, configs
from straggler.strategies.streams import SEEDS, cuts


def results(trace: Trace) -> list[tuple[str, int, int]]:
    """Return the matches without their epochs."""
    return [(match.query, match.r_id, match.s_id) for match in trace.of(Match)]


@given(case=cases(), chain=configs(), seed=SEEDS, data=st.data())
def test_epochs_workers_blocks_and_timing_change_no_result(
    system: System, case: Workload, chain: JoinConfig, seed: int, data: st.DataObject
) -> None:
    other = {name: getattr(chain, name) for name in ("workers", "block_size", "credit")}
    flushed = case.with_(flush=True)
    # The results of a query that is limited to epochs depend on the cuts, and so does what is shed,
    # and what is late by the silence of a stream.
    config = JoinConfig.from_json(case.config)
    by_epoch = config.epochs or config.idle_after_us or any(e.share for e in config.decisions)
    other_cuts = case.cuts if by_epoch else data.draw(cuts(len(case.arrivals)))
    changed = flushed.with_(config={**case.config, **other}, cuts=other_cuts, seed=seed)
    one, another = system(flushed), system(changed)
    assert results(one) == results(another)
    assert one.of(Rejected) == another.of(Rejected)


@given(case=cases())
def test_a_query_finds_what_it_finds_alone(system: System, case: Workload) -> None:
    flushed = case.with_(flush=True)
    together = results(system(flushed))
    for query in case.config["queries"]:
        epochs = [each for each in case.config["epochs"] if each[0] == query[0]]
        alone = flushed.with_(config={**case.config, "queries": [query], "epochs": epochs})
        assert results(system(alone)) == [each for each in together if each[0] == query[0]]
