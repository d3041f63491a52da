"""Words of room ``grouping``: the router's configuration and the steps of its traces.

Source: TAG, time-aware grouping of skewed streams. ``docs/grouping.md`` is the specification;
names here follow it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, NamedTuple, TypeAlias

from model.vocabulary.settings import JsonObject, PlainData, Setting, Settings, is_int, require
from model.vocabulary.trace import fields_of

POLICIES = (
    "key",
    "shuffle",
    "pkg",
    "w-choices",
    "dkg",
    "nag-static",
    "nag-dynamic",
    "dag",
    "tag-literal",
    "tag",
)
HEAVY_EACH: Mapping[str, int] = {"dag": 100}
"""Number of keys for each instance that may be heavy by default, if it is not 5."""

LEAST_SHARE = 1e-15
"""Least ``theta`` and ``eps``: counters are numbered with 64 bits."""

TIME_US_MAX = 10**12
"""Longest time of a tuple: the work of a million tuples fits into 64 bits."""

REASON_NOT_FINITE = "value is not a finite number"


Pairs: TypeAlias = tuple[tuple[int, tuple[int, ...]], ...]
"""Numbers of all instances, each with the micro-batch from which on they count."""


def _of(pairs: Pairs, batch: int, before: tuple[int, ...]) -> tuple[int, ...]:
    return next((each for first, each in reversed(pairs) if first <= batch), before)


@dataclass(frozen=True, slots=True)
class GroupingConfig(Settings):
    """Settings of a router that spreads a stream over the instances of an operator.

    Raise ``ValueError`` with one sentence that names the offending value.

    Examples:
        >>> GroupingConfig(4, "key").theta_share
        0.05
    """

    instances: Annotated[int, Setting("n, number of instances", above=0)]
    policy: Annotated[str, Setting("rule of the router", choices=POLICIES)] = "tag"
    times_us: Pairs = ()
    """Pairs (first micro-batch, time each instance is busy with a tuple (us)); empty: 1 us each."""
    latency_us: Annotated[
        tuple[int, ...], Setting("propagation delay to each instance; decides among equals only")
    ] = ()
    senders: Annotated[int, Setting("p, number of senders", above=0)] = 1
    window_tuples: Annotated[
        int, Setting("tuples of a window; it ends with the micro-batch that fills it", above=0)
    ] = 100_000
    theta: Annotated[
        float | None,
        Setting(
            "share above which a key is heavy (1/(5n); dag: 1/(100n))",
            at_least=LEAST_SHARE,
            below=1,
        ),
    ] = None
    eps: Annotated[
        float | None,
        Setting("error of the summaries, as a share (theta/2)", at_least=LEAST_SHARE, below=1),
    ] = None
    gamma: Annotated[
        float, Setting("tag: a key of share p gets at least p/gamma of the speed", above=0)
    ] = 0.2
    alpha: Annotated[
        float, Setting("dag: weight of the instances that had the key", at_least=0, at_most=1)
    ] = 0.5
    draw_tuples: Annotated[
        int | None, Setting("tag-literal: tuples a draw (those of a key at theta)", above=0)
    ] = None
    tiers: Annotated[
        tuple[int, ...], Setting("nag: distance of each instance, 0 to 3", at_least=0, at_most=3)
    ] = ()
    later_tiers: Pairs = ()
    """Pairs (first micro-batch, above 0, distance of each instance), for ``nag-dynamic``."""
    hash_seed: Annotated[int, Setting("seed of the hash functions", at_least=0, below=1 << 64)] = 42
    top: Annotated[int, Setting("number of largest values in an answer", above=0)] = 3

    def _check_together(self) -> None:
        good = self.eps_share <= self.theta_share / 2
        require(good, "eps", self.eps, f"at most half of theta, {self.theta_share / 2}")
        self._require_one_an_instance("latency_us", self.latency_us, 0)
        self._require_one_an_instance("tiers", self.tiers, 0)
        self._require_pairs("times_us", self.times_us, 0, 1, TIME_US_MAX)
        first = self.times_us[0][0] if self.times_us else 0
        require(first == 0, "the first micro-batch of times_us", first, "0")
        self._require_pairs("later_tiers", self.later_tiers, 1, 0, 3)

    def _require_pairs(self, name: str, pairs: Pairs, first: int, least: int, most: int) -> None:
        for pair in pairs:
            good = isinstance(pair, tuple) and len(pair) == 2 and is_int(pair[0])
            require(good, f"an entry of {name}", pair, "a micro-batch and its numbers")
            batch, values = pair
            require(batch >= first, f"the micro-batch of {name}", batch, f"at least {first}")
            require(bool(values), name, pairs, "a number for every instance")
            self._require_one_an_instance(name, values, least, most)
            first = batch + 1

    def _require_one_an_instance(
        self, name: str, values: tuple[int, ...], least: int, most: int = TIME_US_MAX
    ) -> None:
        good = isinstance(values, tuple) and len(values) in {0, self.instances}
        require(good, name, values, f"one number for each of the {self.instances} instances")
        for value in values:
            require(is_int(value), name, value, "made of integers")
            require(value >= least, name, value, f"at least {least}")
            require(value <= most, name, value, f"at most {most}")

    @property
    def theta_share(self) -> float:
        """Share of the tuples above which a key is heavy."""
        if self.theta is not None:
            return self.theta
        return 1 / (HEAVY_EACH.get(self.policy, 5) * self.instances)

    @property
    def eps_share(self) -> float:
        """Error of the summaries, as a share of the tuples."""
        return self.theta_share / 2 if self.eps is None else self.eps

    def times_of(self, batch: int) -> tuple[int, ...]:
        """Return ``t_i`` of a window whose first micro-batch is ``batch`` (us)."""
        return _of(self.times_us, batch, (1,) * self.instances)

    def tiers_of(self, batch: int) -> tuple[int, ...]:
        """Return the distances in a window whose first micro-batch is ``batch``."""
        given = self.tiers or (0,) * self.instances
        return _of(self.later_tiers, batch, given) if self.policy == "nag-dynamic" else given

    def to_json(self) -> dict[str, PlainData]:
        """Return plain data; ``GroupingConfig.from_json`` reads it back."""
        data = Settings.to_json(self)
        data["times_us"] = [[batch, list(times)] for batch, times in self.times_us]
        data["later_tiers"] = [[batch, list(tiers)] for batch, tiers in self.later_tiers]
        # Stores of earlier versions do not have it; those of nag-dynamic had another rule.
        if not self.later_tiers and self.policy != "nag-dynamic":
            del data["later_tiers"]
        return data | {name: list(data[name]) for name in ("latency_us", "tiers")}

    @classmethod
    def _decoded(cls, data: JsonObject) -> dict[str, PlainData]:
        given = {**data}
        for name in sorted({"latency_us", "tiers", "times_us", "later_tiers"} & set(data)):
            try:
                given[name] = tuple(data[name])
                if name in ("times_us", "later_tiers"):
                    given[name] = tuple((batch, tuple(each)) for batch, each in data[name])
            except (TypeError, ValueError) as error:
                msg = f"{name} is {data[name]!r}; it must be a list"
                raise ValueError(msg) from error
        return given


class Route(NamedTuple):
    """Instance that the router chose for an arrival."""

    seq: int
    sender: int
    instance: int


class Heavy(NamedTuple):
    """A key that is heavy in a window, according to the summary of the window before."""

    window: int
    key: str
    counted: int
    """Count of the key in the merged summary, at least its true frequency."""
    error: int
    tuples: int
    """Number N of tuples of the window before."""
    candidates: tuple[int, ...]
    """Indices of the instances that the policy allows; all if the policy has no such set."""


class Partial(NamedTuple):
    """Partial aggregate of a (window, key) pair on one instance."""

    window: int
    instance: int
    key: str
    n: int
    total: float
    least: float
    greatest: float


class Answer(NamedTuple):
    """Aggregate of a (window, key) pair over all instances."""

    window: int
    key: str
    n: int
    total: float
    least: float
    greatest: float
    distinct: int
    """Number of different values."""
    top: tuple[float, ...]
    """The largest values, largest first."""


class Rejected(NamedTuple):
    """An arrival that is in no aggregate, with the reason."""

    seq: int
    reason: str


WORDS: tuple[type, ...] = (Route, Heavy, Partial, Answer, Rejected)
ANSWERS: Mapping[type, tuple[str, ...]] = {word: fields_of(word) for word in (Answer, Rejected)}
"""Fields of answers: the aggregates over all instances, and the arrivals that are in none."""
