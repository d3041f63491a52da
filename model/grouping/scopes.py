"""Every small stream with every cut through the routers.

Rules of this file:

* A state is the stream that has arrived. Two orders of arrival are two states, because promises are
  about the whole stream. So state counts are counts of streams.
* A capital letter is a tuple of the key in small letters whose value is not finite.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import nan
from typing import NamedTuple

from model.checking.claims import Judgement
from model.checking.explorer import Exploration, Machine, StateClaim, claims_on_workloads
from model.checking.explorer import explore as search
from model.grouping.claims import CLAIMS, FEW, judge
from model.grouping.machine import run
from model.vocabulary import Event, GroupingConfig, Workload


class Stream(NamedTuple):
    """The stream that has arrived: a letter a tuple, and where micro-batches end."""

    keys: str = ""
    cuts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Scope:
    """Streams of a few keys, and the routers that they go through."""

    config: GroupingConfig
    keys: str
    tuples: int
    """Largest number of tuples."""

    def workload(self, stream: Stream) -> Workload:
        """Return a stream as a workload; values are powers of two, so sums name their tuples."""
        arrivals = tuple(
            Event(seq, seq, key.lower(), 100, nan if key.isupper() else float(1 << seq), 100)
            for seq, key in enumerate(stream.keys)
        )
        cuts = tuple(cut for cut in stream.cuts if cut < len(arrivals))
        return Workload("grouping", arrivals, self.config.to_json(), cuts)

    def machine(self) -> Machine[Stream, str]:
        """Return the transition system: a tuple arrives, or a micro-batch ends."""
        return Machine([Stream()], self._actions, _action, _describe)

    def _actions(self, stream: Stream) -> Iterator[tuple[str, Stream]]:
        length = len(stream.keys)
        if length == self.tuples:
            return
        for key in self.keys:
            yield key, stream._replace(keys=stream.keys + key)
        if length and stream.cuts[-1:] != (length,):
            yield "|", stream._replace(cuts=(*stream.cuts, length))


def _action(key: str) -> str:
    if key == "|":
        return "A micro-batch ends"
    value = ", its value not finite" if key.isupper() else ""
    return f"A tuple of key {key.lower()} arrives{value}"


def _describe(stream: Stream) -> str:
    if not stream.keys:
        return "nothing has arrived"
    ends = (*stream.cuts, len(stream.keys))
    starts = (0, *stream.cuts)
    batches = [stream.keys[a:b] for a, b in zip(starts, ends, strict=True) if a < b]
    return f"arrived have {' | '.join(batches)}"


def _config(policy: str) -> GroupingConfig:
    """Return three unequal instances whose speeds are reversed, and windows of two tuples."""
    return GroupingConfig(
        3,
        policy,
        ((0, (1, 2, 4)), (2, (4, 2, 1))),
        latency_us=(5, 5, 0),
        senders=2,
        window_tuples=2,
        hash_seed=1,
    )


SCOPES: Mapping[str, Scope] = {
    "tag": Scope(_config("tag"), "abA", 5),
    "tag-literal": Scope(_config("tag-literal"), "abA", 5),
    "w-choices": Scope(_config("w-choices"), "abA", 5),
    "pkg": Scope(_config("pkg"), "abA", 5),
    "long": Scope(_config("tag"), "ab", 8),
}
EVERYDAY = ("tag", "w-choices", "pkg")


# --------------------------------------------------------------------------------------- claims


def claims_of(scope: Scope) -> list[StateClaim[Stream]]:
    """Return the promises, each with the case without which it would be untested."""

    def judge_stream(stream: Stream) -> Judgement:
        workload = scope.workload(stream)
        return judge(workload, run(workload))

    guards = {**CLAIMS.guards}
    if scope.config.policy == "pkg":  # which gives no key more than two places
        guards[FEW] = "tuples of heavy keys"
    return claims_on_workloads(judge_stream, guards)


def explore(scope: str) -> Exploration[Stream, str]:
    """Search a scope. Raise ``KeyError`` for an unknown name."""
    chosen = SCOPES[scope]
    return search(chosen.machine(), claims_of(chosen))
