"""Words of room ``grouping``: the router's configuration and the steps of its traces.

Source: TAG, time-aware grouping of skewed streams. ``docs/grouping.md`` is the specification;
names here follow it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from math import isfinite
from typing import Any, NamedTuple

from model.vocabulary.settings import is_int, is_number, one_of, require, require_known

POLICIES = (
    "key",
    "round-robin",
    "shuffle",
    "pkg",
    "d-choices",
    "w-choices",
    "dkg",
    "nag-static",
    "nag-dynamic",
    "dag",
    "cg",
    "tag-literal",
    "tag",
)
TIERS = (0, 1, 2, 3)
"""Same process, same node, same rack, elsewhere."""

LEAST_SHARE = 1e-15
"""Of ``theta`` and ``eps``: counters are numbered with 64 bits."""

TIME_US_MAX = 10**12
"""Of a tuple; the work of a million tuples is still an integer of 64 bits."""

REASON_NOT_FINITE = "value is not a finite number"


@dataclass(frozen=True, slots=True)
class GroupingConfig:
    """How a stream is to be spread over the instances of an operator.

    Raises ``ValueError`` with one sentence that names the offending value.
    """

    instances: int
    """n."""
    policy: str = "tag"
    times_us: tuple[tuple[int, tuple[int, ...]], ...] = ()
    """From which micro-batch on, and how long each instance is busy with a tuple (1 by default)."""
    latency_us: tuple[int, ...] = ()
    """Propagation delay to each instance; chooses among equals only."""
    senders: int = 1
    """p."""
    window_tuples: int = 100_000
    """A window ends with the micro-batch that fills it."""
    theta: float | None = None
    """A key is heavy above this share; ``None``: 1/(5n)."""
    eps: float | None = None
    """Error of the summaries, as a share; ``None``: theta/2."""
    gamma: float = 0.2
    """``tag``: a key of share p gets at least p/gamma of the speed."""
    alpha: float = 0.5
    """``dag``: weight of where the key has been before."""
    draw_tuples: int | None = None
    """``tag-literal``: tuples a draw; ``None``: those of a key at theta."""
    tiers: tuple[int, ...] = ()
    """``nag``: how far away each instance is, 0 to 3."""
    hash_seed: int = 42
    top: int = 3
    """How many of the largest values an answer has."""

    def __post_init__(self) -> None:
        for name in ("instances", "senders", "window_tuples", "top", "draw_tuples"):
            value = getattr(self, name)
            if value is not None or name != "draw_tuples":
                require(is_int(value), name, value, "an integer")
                require(value > 0, name, value, "greater than 0")
        require(self.policy in POLICIES, "policy", self.policy, one_of(POLICIES))
        for name in ("theta", "eps"):
            value = getattr(self, name)
            if value is not None:
                good = is_number(value) and 0 < value < 1
                require(good, name, value, "a number greater than 0 and less than 1")
                require(value >= LEAST_SHARE, name, value, f"at least {LEAST_SHARE}")
        good = self.eps_share <= self.theta_share / 2
        require(good, "eps", self.eps, f"at most half of theta, {self.theta_share / 2}")
        good = is_number(self.gamma) and isfinite(self.gamma) and self.gamma > 0
        require(good, "gamma", self.gamma, "a finite number greater than 0")
        good = is_number(self.alpha) and 0 <= self.alpha <= 1
        require(good, "alpha", self.alpha, "a number from 0 to 1")
        good = is_int(self.hash_seed) and 0 <= self.hash_seed < 1 << 64
        require(good, "hash_seed", self.hash_seed, "an integer from 0 to 2^64 - 1")
        self._require_one_an_instance("latency_us", self.latency_us, 0)
        self._require_one_an_instance("tiers", self.tiers, 0)
        good = all(tier in TIERS for tier in self.tiers)
        require(good, "tiers", self.tiers, "made of 0, 1, 2 and 3")
        self._require_times()

    def _require_times(self) -> None:
        last = -1
        for pair in self.times_us:
            good = isinstance(pair, tuple) and len(pair) == 2 and is_int(pair[0])
            require(good, "an entry of times_us", pair, "a micro-batch and its times")
            batch, times = pair
            require(batch > last, "the micro-batch of times_us", batch, f"at least {last + 1}")
            require(bool(times), "times_us", self.times_us, "a time for every instance")
            self._require_one_an_instance("times_us", times, 1)
            last = batch
        first = self.times_us[0][0] if self.times_us else 0
        require(first == 0, "the first micro-batch of times_us", first, "0")

    def _require_one_an_instance(self, name: str, values: Any, least: int) -> None:
        good = isinstance(values, tuple) and len(values) in {0, self.instances}
        require(good, name, values, f"one number for each of the {self.instances} instances")
        for value in values:
            require(is_int(value), name, value, "made of integers")
            require(value >= least, name, value, f"at least {least}")
            require(value <= TIME_US_MAX, name, value, f"at most {TIME_US_MAX}")

    @property
    def theta_share(self) -> float:
        """Above this share a key is heavy."""
        return 1 / (5 * self.instances) if self.theta is None else self.theta

    @property
    def eps_share(self) -> float:
        """Error of the summaries, as a share of the tuples."""
        return self.theta_share / 2 if self.eps is None else self.eps

    def times_of(self, batch: int) -> tuple[int, ...]:
        """``t_i`` for a window whose first micro-batch is ``batch``."""
        times = (1,) * self.instances
        for first, each in self.times_us:
            times = each if first <= batch else times
        return times

    def to_json(self) -> dict[str, Any]:
        """Plain data; ``GroupingConfig.from_json`` reads it back."""
        data = {item.name: getattr(self, item.name) for item in fields(self)}
        data["times_us"] = [[batch, list(times)] for batch, times in self.times_us]
        return data | {name: list(data[name]) for name in ("latency_us", "tiers")}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "GroupingConfig":
        """Build from plain data; an unknown or missing name is a ``ValueError``."""
        require_known(data, {item.name for item in fields(cls)}, ("instances",))
        given = {**data}
        for name in sorted({"latency_us", "tiers", "times_us"} & set(data)):
            try:
                given[name] = tuple(data[name])
                if name == "times_us":
                    given[name] = tuple((batch, tuple(times)) for batch, times in data[name])
            except (TypeError, ValueError) as error:
                msg = f"{name} is {data[name]!r}; it must be a list"
                raise ValueError(msg) from error
        return cls(**given)


class Route(NamedTuple):
    """An arrival went to an instance."""

    seq: int
    sender: int
    instance: int


class Heavy(NamedTuple):
    """A key that is heavy in a window, by the summary of the window before."""

    window: int
    key: str
    counted: int
    """Its count in the merged summary; at least its true frequency."""
    error: int
    tuples: int
    """N, all tuples of the window before."""
    candidates: tuple[int, ...]
    """Instances that the policy lets it go to, by index; all where the policy knows no set."""


class Partial(NamedTuple):
    """What one instance made of a key in a window."""

    window: int
    instance: int
    key: str
    n: int
    total: float
    least: float
    greatest: float


class Answer(NamedTuple):
    """What all instances together made of a key in a window."""

    window: int
    key: str
    n: int
    total: float
    least: float
    greatest: float
    distinct: int
    """Different values."""
    top: tuple[float, ...]
    """The largest values, largest first."""


class Rejected(NamedTuple):
    """An arrival that is in no aggregate, and why."""

    seq: int
    reason: str


WORDS: tuple[type, ...] = (Route, Heavy, Partial, Answer, Rejected)
