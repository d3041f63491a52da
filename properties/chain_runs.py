"""Run a pack of clusters as one chain in SimPy and on Spark, with decisions and trouble on links.

Rules of this file:

* SimPy simulates every cluster, and decides what arrives when, what is killed, and how the chain
  follows its load. The arrivals of all clusters follow each other through one chain, which takes
  the decisions of each cluster, and some drawn decisions (*moves*) between them.
* SimPy and Spark run that chain with the same trouble on the links between its workers.
"""

import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, pairwise
from pathlib import Path

from pyspark.sql import SparkSession

from model.checking.claims import Judgement
from model.vocabulary import JoinConfig, Trace, Workload
from model.vocabulary.join import REASON_SHED, Decision, Forward, Match, Receive, Rejected
from properties.on_spark import choose_faults
from properties.oracles import exchange
from properties.packs import fail_with, simulate
from properties.reached_cases import count_kills, count_redelivered
from sim.join.room import simulate as simulate_chain
from sim.join.tuning import ChainTuning
from sim.kernel.faults import Fault
from sim.kernel.link import Noise, Place
from sim.kernel.plan import Cluster, Plan
from sim.kernel.plan import replay as replayed
from spark_impl.join.system import run_chain
from straggler.judging import counterexamples
from straggler.judging.judge import broken_sentences, compare_traces
from straggler.judging.levels import Scope
from straggler.judging.systems import SPARK, troubled
from straggler.judging.trial import Trial
from straggler.judging.trouble import Trouble, TroubledLinks, read_reports
from straggler.rooms import find_room
from straggler.strategies.chain_workloads import ON_COLUMNS, ChainPack, chain_of
from straggler.strategies.connections import troubles_of
from straggler.strategies.queries import LINK_US

ROOM = find_room("join")


@dataclass(frozen=True, slots=True)
class ChainSeen:
    """The chain of a pack: its workload, SimPy's trace of it, and what Spark did."""

    workload: Workload
    followed: int
    """Number of decisions by load."""
    simulated: Trace
    trace: Trace
    """Spark's own trace."""
    kills: Sequence[int]
    """Epochs in which Spark's driver was killed."""
    planned: Sequence[Trouble]
    """Trouble on the connections between Spark's workers."""
    troubles: Mapping[str, int]
    """Number of times that each kind of trouble happened."""
    came: Sequence[exchange.Report]
    """Number of times each message came to each of Spark's workers, in each run of an epoch."""
    bytes_sent: int
    """Number of bytes that Spark's workers sent to each other."""

    def fail(self, sentences: Sequence[str]) -> None:
        """Fail the test with a smaller workload that also fails, if there is one, and store it.

        The workload is tried and stored with the trouble on the connections of the chain.
        """
        trouble = tuple([each._asdict() for each in self.planned])
        trial = Trial(Scope.of(ROOM), troubled(trouble), SPARK, trouble=trouble)
        fail_with(sentences, trial.report(self.workload, counterexamples.FOLDER))

    def compare_pairs_with_simulation(self) -> tuple[str, ...]:
        """Return the differences of SimPy's and Spark's traces in pairs and rejected arrivals."""
        found = compare_traces(ROOM, self.workload, self.simulated, self.trace, ROOM.step_types)
        return broken_sentences([found[0]])

    def judge_claims(self) -> Judgement:
        """Judge the claims, those about the protocol included, on Spark's own trace."""
        return ROOM.check(self.workload, self.trace)


def run_chain_pack(spark: SparkSession, given: ChainPack, kills: int) -> ChainSeen:
    """Simulate clusters, then run their chain in SimPy, and on Spark with at most so many kills."""
    runs = list(simulate(given.pack).values())
    workload = chain_of([run.workload for run in runs], given.moves)
    epochs = len(list(workload.batches()))
    workload = workload.with_(faults=choose_faults(workload.faults, epochs, kills))
    clusters = [case.plan.cluster for case in given.pack.cases]
    with ThreadPoolExecutor(1) as pool, tempfile.TemporaryDirectory(prefix="straggler-") as folder:
        simulated = pool.submit(_simulate, workload, clusters[0], given.faults)
        place, noted = Path(folder, "chain"), Path(folder, "noted")
        noted.mkdir()
        planned = tuple(troubles_of(given.faults, epochs))
        links = partial(TroubledLinks, planned, str(noted))
        killed, sent = list[int](), list[int]()
        trace = run_chain(spark, workload, place, killed.append, links, sent.append)
        came = read_reports(noted)
        happened = Counter(chain.from_iterable(each["happened"] for each in came))
        found = planned, happened, came, sum(sent)
        followed = len(workload.config["decisions"]) - len(given.moves)
        return ChainSeen(workload, followed, simulated.result(), trace, killed, *found)


def _simulate(workload: Workload, cluster: Cluster, faults: Sequence[Fault]) -> Trace:
    """Return the trace of a chain with recorded steps, on workers that shed nothing themselves."""
    config = JoinConfig.from_json(workload.config)
    count = max([config.workers, *(each.workers for each in config.decisions)])
    workers = [
        replace(cluster.worker(n), queue_limit=None, when_full="block", place=Place(0, n))
        for n in range(count)
    ]
    noise = Noise(0.0, retry_us=LINK_US)
    own = replace(cluster, workers=tuple(workers), noise=noise)
    plan: Plan = replayed(workload.arrivals, "chain", workload.cuts, flush=True, cluster=own)
    tuning = ChainTuning(record=True, intake_us=500, hint_us=1_000, drains=True)
    plan = replace(plan, tuning=tuning, faults=tuple(faults))
    return simulate_chain(plan, config, workload.seed).trace


COLUMNED = tuple([f"pairs of {name}" for name, _ in ON_COLUMNS])
CARRIED = ("results", "results across epochs", "results across a change of workers")
"""All pairs, and those with a tuple that workers carried over from an earlier epoch."""


def count_chain(seen: ChainSeen, guards: Mapping[str, int]) -> dict[str, int]:
    """Count the cases of a chain on Spark; ``guards`` are those of its claims."""
    config = JoinConfig.from_json(seen.workload.config)
    first = Decision(0, config.workers, config.block_size, 0.0)
    changes = list(pairwise((first, *config.decisions)))
    rejected = seen.trace.of(Rejected)
    shed = sum(each.reason == REASON_SHED for each in rejected)
    return {
        "tuples": len(seen.workload.arrivals),
        **{name: guards[name] for name in CARRIED},
        **Counter(f"pairs of {each.query}" for each in seen.trace.of(Match)),
        "rejected": len(rejected) - shed,
        "shed arrivals": shed,
        "redelivered tuples": count_redelivered(seen.workload, {each.seq for each in rejected}),
        "decisions by load": seen.followed,
        "changes of the number of workers": sum(a.workers != b.workers for a, b in changes),
        "changes of the block size": sum(a.block_size != b.block_size for a, b in changes),
        "messages sent": sum(len(report["messages"]) for report in seen.came),
        "forwarded blocks": len(seen.trace.of(Forward)),
        "copies met": sum(block.copies for block in seen.trace.of(Receive)),
        "messages that came late": seen.troubles["late"],
        "messages that came again": seen.troubles["again"],
        "lost connections": seen.troubles["lost"],
        **count_kills(seen.kills),
    }
