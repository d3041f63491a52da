"""Spark's workers, chained in one process over all kinds of networks, against the reference.

Whatever the network does, the results are those of the nested loop, and what the workers record is
a behaviour of the protocol.
"""

from random import Random

from model.join import run
from model.vocabulary.join import Quiet, Rejected
from properties.stream_packs import collect
from spark_impl.join import run_in_process
from spark_impl.join.in_process import Network
from straggler.strategies.join import cases
from tests.properties.join.test_model import results

CASES_A_NETWORK = 60
NETWORKS = {
    "fifo": Network(),
    "unforced": Network(unforced=0.3),
    "unordered": Network(ordered=False, unforced=0.3),
    "twice": Network(twice=0.2, unforced=0.3),
    "cut": Network(cut=0.05, unforced=0.3),
}


def test_workers_that_come_and_go_between_epochs_change_no_result(seed: int) -> None:
    random = Random(seed)
    taken_over = 0
    for case in collect(cases(), CASES_A_NETWORK, seed):
        flushed = case.with_(flush=True)
        sizes = tuple(random.randint(1, 5) for _ in range(4))
        trace = run_in_process(flushed, NETWORKS["cut"], seed, workers=sizes)
        reference = run(flushed)
        assert results(trace) == results(reference), sizes
        assert trace.of(Rejected) == reference.of(Rejected), sizes
        taken_over += sum(step.r_held + step.s_held for step in trace.of(Quiet))
    assert taken_over, "no worker held anything when their number changed"
