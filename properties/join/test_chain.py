"""Spark's workers, chained in one process over all kinds of networks, against the reference.

Whatever the network does, the results are those of the nested loop, and what the workers record is
a behaviour of the protocol.
"""

import pytest

from model.claims import Outcome
from model.join.claims import CASES, judge, over_all
from model.join.recorded import validate_recording
from model.vocabulary.join import Forward, Receive
from properties import packs
from properties.join.strategies import cases
from spark_impl.join import run_in_process
from spark_impl.join.chain import Network

CASES_A_NETWORK = 60
NETWORKS = {
    "fifo": Network(),
    "unforced": Network(unforced=0.3),
    "unordered": Network(ordered=False, unforced=0.3),
    "twice": Network(twice=0.2, unforced=0.3),
    "cut": Network(cut=0.05, unforced=0.3),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_workers_keep_the_promises_of_the_chain(name: str, seed: int) -> None:
    drawn = packs.collect(cases(), CASES_A_NETWORK, seed)
    traces = [run_in_process(case, NETWORKS[name], seed) for case in drawn]
    evidence = [judge(case, trace) for case, trace in zip(drawn, traces, strict=True)]
    for verdict in over_all(evidence):
        assert verdict.outcome is Outcome.HOLDS, (verdict.claim, verdict.sentence)
    for case, trace in zip(drawn, traces, strict=True):
        verdict = validate_recording(case, trace)
        assert verdict.outcome is Outcome.HOLDS, (verdict.sentence, verdict.witness)
    for guard in CASES:
        assert sum(each.guards[guard] for each in evidence), f"there were no {guard}"
    assert any(trace.of(Forward) for trace in traces), "no block was sent"
    assert any(trace.of(Receive) for trace in traces), "no block came"
