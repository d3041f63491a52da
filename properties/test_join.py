"""Room ``join``: every worker's steps are a behaviour of the protocol, on any network."""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from model.checking.claims import Outcome
from model.join.claims import CLAIMS
from model.join.replay import validate_recording
from model.join.run import run as model_run
from model.vocabulary import Trace, Workload
from model.vocabulary.join import Match, Rejected
from properties.agreement import Agreement, crowded, put_to_the_test
from properties.chain_workloads import loaded_chains, long_case
from properties.operators.join import SparkMachine
from properties.promised import Reached, promised
from sim.join import ChainRun, simulate
from sim.join.machine import MachineOf
from sim.join.model_chain import ModelChain
from sim.kernel.link import Tiers
from spark_impl.join import run_in_process, side
from spark_impl.join.in_process import Network
from straggler.strategies.join import TimedCase, cases, clusters_of_chains, recordings_on_chains
from straggler.strategies.streams import SEEDS

NETWORKS = (
    Network(),
    Network(unforced=0.3),
    Network(ordered=False, unforced=0.3),
    Network(twice=0.2, unforced=0.3),
    Network(cut=0.05, unforced=0.3),
)
ACROSS = "pairs across the first epoch of a query"
ROOM_FOR = st.sampled_from([1, side.ROWS_MIN])
"""Fewest rows that a worker has room for: with one, arrays grow while copies are on their way."""
LOADED = 16
"""Load curves that chains follow, one after another."""


def follows_the_protocol(case: Workload, network: Network, seed: int, reached: Reached) -> None:
    """Run Spark's workers in process; their steps have to be a behaviour of MP-2PF."""
    trace = run_in_process(case, network, seed)
    verdict = validate_recording(case, trace)
    assert verdict.outcome is Outcome.HOLDS, (verdict.sentence, verdict.witness)
    Agreement.of("join", reached).keeps_claims(case, trace)


@promised(*set(put_to_the_test(CLAIMS)) - {ACROSS}, examples=60)
@given(case=cases(), network=st.sampled_from(NETWORKS), seed=SEEDS, room=ROOM_FOR)
def test_spark_s_workers_follow_the_protocol(
    reached: Reached, case: Workload, network: Network, seed: int, room: int
) -> None:
    with patch.object(side, "ROWS_MIN", room):
        follows_the_protocol(case, network, seed, reached)
    Agreement.of("join", Reached()).keeps_claims(case, model_run(case))


@promised("shed arrivals", "tuples held when workers came or went", ACROSS)
def test_workers_follow_the_protocol_while_load_changes(reached: Reached, seed: int) -> None:
    with patch.object(side, "ROWS_MIN", 1):
        for number, case in enumerate([long_case(3, seed), *loaded_chains(LOADED, seed)]):
            for network in NETWORKS:
                follows_the_protocol(case, network, seed + number, reached)


def results(trace: Trace) -> Counter[tuple[str, int, int]]:
    """Count the matches, without their epochs."""
    return Counter(match[:3] for match in trace.of(Match))


def run_is_right(timed: ChainRun, reached: Reached) -> None:
    """Assert that the claims hold on a timed run, and that the model has the same results."""
    Agreement.of("join", reached).keeps_claims(timed.workload, timed.trace)
    model = model_run(timed.workload.with_(flush=True))
    assert model.of(Rejected) == timed.trace.of(Rejected)
    assert not results(timed.trace) - results(model)
    assert results(model) == results(timed.trace) or not timed.workload.flush
    reached.add({name: int(timed.summary.get(name, 0)) for name in FIGURES})
    reached.add(Counter(fault.kind for fault in timed.plan.faults))
    reached.add(Counter(_resized(timed)))
    if "blocks" in timed.summary:
        workers = range(timed.workload.config["workers"])
        places = [timed.plan.cluster.worker(number).place for number in workers]
        reached.add(Counter(f"tier {timed.plan.way(*each)}" for each in pairwise(places)))


def _resized(timed: ChainRun) -> Iterator[str]:
    """Yield whether workers came or went, for each change of their number."""
    for change in str(timed.summary["resized"]).split(", "):
        if change != "no":
            before, after = map(int, change.split(" to "))
            yield "workers came" if before < after else "workers went"


KINDS = ("pause", "slow", "fail", "congest", "lose", "replay")
TIERS = tuple(f"tier {each}" for each in (None, *Tiers()))
MACHINES = st.sampled_from([ModelChain, SparkMachine])
TROUBLES = ("arrivals_taken_again", "intake_pauses", "blocks", "sent_again", "came_again")
"""Trouble between workers that timed runs have to meet."""
FIGURES = ("shed", "shed_at_log", "failures", *TROUBLES)


@promised(*TROUBLES, *KINDS, *TIERS, "workers came", "workers went", examples=60)
@given(case=recordings_on_chains(), machine=MACHINES)
def test_a_recording_finds_every_pair_once_whatever_the_timing(
    reached: Reached, case: TimedCase, machine: MachineOf
) -> None:
    run_is_right(simulate(case.plan, case.config, case.seed, machine=machine), reached)


def dropping(case: TimedCase) -> TimedCase:
    """Return the case with workers that have room for one tuple, and drop all others."""
    return case._replace(plan=crowded(case.plan, "drop"))


@promised("shed", "shed_at_log", "failures", "duplicate", examples=30)
@given(case=clusters_of_chains() | clusters_of_chains().map(dropping), machine=MACHINES)
def test_a_cluster_finds_every_pair_once_whatever_the_timing(
    reached: Reached, case: TimedCase, machine: MachineOf
) -> None:
    run_is_right(simulate(case.plan, case.config, case.seed, machine=machine), reached)
