"""Errata of room ``watermark``: the published formula, read literally, waits when nothing is late.

Source: dynamic adjustment of the watermark by the disorder of a micro-cluster.
"""

from collections.abc import Iterator

from model.checking.claims import Verdict
from model.vocabulary import Trace, WatermarkConfig, Workload
from model.vocabulary.watermark import Clock
from model.watermark import make_system
from model.watermark.claims import CLAIMS, judge
from model.watermark.variants import VARIANTS
from straggler.errors import counted
from straggler.pages.errata import Findings, Kind, erratum, promise_or_broken, smallest_stream
from straggler.rooms.windows import cases

BUG = VARIANTS["literal"]
TIMES_US = range(4)
TUPLES_MAX = 4
CONFIG = WatermarkConfig(2, 2, 6, k=3, keyed=False, aggregate="count").to_json()
"""Clusters of three tuples, so that a fourth tuple makes the first one leave."""


def streams() -> Iterator[Workload]:
    """Yield all streams of a few tuples, which go on; fewer tuples first."""
    for each in cases.streams("watermark", CONFIG, TIMES_US, [1.0] * TUPLES_MAX):
        yield each.with_(flush=False)


def _scope() -> Verdict:
    """Judge the right rule on every stream; any broken promise counts."""
    right = make_system()
    judged = [judge(workload, right(workload)) for workload in streams()]
    verdict = promise_or_broken(CLAIMS.over_all(judged), BUG.promise)
    sentence = (
        f"{verdict.sentence} These were all {len(judged):,} streams of up to {TUPLES_MAX} tuples."
    )
    return Verdict(verdict.claim, verdict.outcome, sentence)


def _describe(workload: Workload, trace: Trace) -> Iterator[str]:
    """Describe a trace, arrival by arrival."""
    config = WatermarkConfig.from_json(workload.config)
    yield (
        f"Windows of {config.size_us} us; M is {config.max_wait_us} us, a cluster has"
        f" {config.k} tuples."
    )
    clocks = {clock.seq: clock for clock in trace.of(Clock)}
    for event in workload.arrivals:
        clock = clocks[event.seq]
        happens = (
            f"{counted(clock.inv, 'pair')} out of order, the wait is {clock.wait_us},"
            f" the watermark {clock.wm_us}"
        )
        yield f"{event.seq + 1}. A tuple of event time {event.event_time_us} arrives: {happens}."


def _search() -> Findings:
    return smallest_stream(BUG, make_system(), judge, streams(), _describe, _scope)


ERRATA = (
    erratum(
        BUG,
        Kind.PRINTED,
        "order-degree",
        "The calmer the stream, the shorter the wait.",
        "dynamic adjustment of the watermark by the disorder of a micro-cluster: W = N - M*P is"
        " printed twice (equations 3 and 5), and P = 1 for a cluster in order; the formula for P in"
        " between is lost (equation 4), but its two ends suffice",
        _search,
    ),
)
