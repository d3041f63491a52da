"""Words of room ``slack``: the query's configuration and the steps of its traces.

Source: the hybrid processing model (a K-slack stream module whose buffer is adjusted by a
controller, and a batch module that corrects from history). ``docs/slack.md`` is the
specification; names here follow it.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

from model.vocabulary.answers import (
    AGGREGATES,
    REASON_FUTURE,
    REASON_NOT_FINITE,
    Cleared,
    Correction,
    Correlation,
    Final,
    Late,
    Rejected,
    Result,
    Revision,
)
from model.vocabulary.settings import (
    is_number,
    one_of,
    require,
    require_integers,
    require_known,
)
from model.vocabulary.windows import WindowSpec

__all__ = [
    "ADAPTIVE_CONTROLS",
    "AGGREGATES",
    "CONTROLS",
    "MAX_CORRELATED",
    "METHODS",
    "MIN_DELTA",
    "MIN_PERMUTATION_DELTA",
    "REASON_FUTURE",
    "REASON_NEGATIVE",
    "REASON_NOT_FINITE",
    "SAMPLINGS",
    "SELF_SUFFICIENT_AGGREGATES",
    "WORDS",
    "Cleared",
    "Correction",
    "Correlation",
    "Final",
    "Judged",
    "Late",
    "Progress",
    "Rejected",
    "Result",
    "Revision",
    "SlackConfig",
]

CONTROLS = ("conformal", "fixed", "max", "pd", "pd-clamped")
ADAPTIVE_CONTROLS = ("conformal", "pd", "pd-clamped")
SELF_SUFFICIENT_AGGREGATES = ("sum", "count", "avg", "median", "quantile")
"""Aggregates whose required coverage follows from (eps, delta) without ``lambda_thr``."""
METHODS: dict[str, tuple[str, ...]] = {
    "normal": AGGREGATES,
    "permutation": ("sum",),
    "rigorous": ("sum", "avg"),
}
"""How the required coverage is found, and for which aggregates there is a choice."""
SAMPLINGS = ("exchangeable", "adversarial")
MIN_DELTA = 1e-12
"""Below, float64 soon cannot tell 1 - delta from 1."""
MIN_PERMUTATION_DELTA = 0.001
"""Below, a window would need more permutations than memory holds: their number is 10 / delta."""
MAX_CORRELATED = 2_000_000
"""Tuples of a window beyond which its rank correlation is left out: its sums fit into 64 bits."""


@dataclass(frozen=True, slots=True)
class SlackConfig:
    """What the user asks of a continuous sliding-window query.

    Raises ``ValueError`` with one sentence that names the offending value.
    """

    size_us: int
    """Window length W."""
    slide_us: int
    """Window slide s."""
    aggregate: str = "sum"
    q: float = 0.5
    """Rank of ``quantile``, taken as the decimal number written; ``median`` always has 0.5."""
    keyed: bool = True
    """Results per (task, key, window); otherwise per (task, window), with the key ``""``."""
    tasks: int = 1
    """Number of tasks; a tuple belongs to task ``task_of(key, tasks)``."""
    control: str = "conformal"
    eps: float = 0.05
    """Relative error that the first answer should stay below."""
    delta: float = 0.05
    """Probability with which it may not."""
    lambda_thr: float | None = None
    """Required coverage given by hand; otherwise it follows from (eps, delta)."""
    method: str = "normal"
    """How the required coverage of a sum or an average is found: docs/slack.md, section 5."""
    sampling: str = "exchangeable"
    """What is assumed about the tuples that are missing: ``exchangeable`` or ``adversarial``."""
    cv: float | None = None
    """Coefficient of variation of the values; otherwise estimated while the stream runs."""
    fixed_slack_us: int = 0
    """K of the control ``fixed``."""
    learning_rate: float = 0.05
    """Step size gamma of the control ``conformal``."""
    kp: float = 0.2
    kd: float = 4.0
    feedback_us: int | None = None
    """L: how long after its end a window is judged; ``None`` means one window length."""
    max_slack_us: int | None = None
    """Upper limit of K."""
    max_future_us: int | None = None
    """A tuple whose event time lies further than this ahead of its arrival is rejected."""
    gamma_us: int = 5_000_000
    """Gamma: a correction starts when the pending tuples span more event time than this."""
    max_age_us: int | None = None
    """... or when the oldest of them lies further than this behind the watermark; ``None``: 4 W."""
    dedup: bool = True
    """Recognise redeliveries; turn off only for a source that delivers every identity once."""

    def __post_init__(self) -> None:
        self._check_sizes()
        self._check_quality()
        self._check_choices()

    @property
    def windows(self) -> WindowSpec:
        """The windows of the query."""
        return WindowSpec(self.size_us, self.slide_us)

    @property
    def feedback(self) -> int:
        """L in microseconds, default applied."""
        return self.size_us if self.feedback_us is None else self.feedback_us

    @property
    def max_age(self) -> int:
        """Age trigger in microseconds, default applied."""
        return 4 * self.size_us if self.max_age_us is None else self.max_age_us

    @property
    def needs_positive_values(self) -> bool:
        """Whether a relative error of a sum is promised, which negative values would void."""
        return self.aggregate == "sum" and self.control in ADAPTIVE_CONTROLS

    @property
    def needs_values(self) -> bool:
        """Whether the required coverage of a window depends on the values in it."""
        if self.lambda_thr is not None or self.aggregate not in ("sum", "avg"):
            return False
        return self.method != "normal" or self.sampling == "adversarial"

    def to_json(self) -> dict[str, Any]:
        """Plain data; ``SlackConfig.from_json`` reads it back."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "SlackConfig":
        """Build from plain data; an unknown name is a ``ValueError``."""
        require_known(data, {item.name for item in fields(cls)}, ())
        return cls(**data)

    def _check_sizes(self) -> None:
        require_integers(
            self,
            ("size_us", "slide_us", "tasks"),
            ("fixed_slack_us", "gamma_us"),
            ("feedback_us", "max_slack_us", "max_future_us", "max_age_us"),
        )

    def _check_choices(self) -> None:
        require(self.aggregate in AGGREGATES, "aggregate", self.aggregate, one_of(AGGREGATES))
        require(self.control in CONTROLS, "control", self.control, one_of(CONTROLS))
        methods = tuple(METHODS)
        require(self.method in methods, "method", self.method, one_of(methods))
        require(self.sampling in SAMPLINGS, "sampling", self.sampling, one_of(SAMPLINGS))
        if self.aggregate not in METHODS[self.method]:
            known = " and ".join(METHODS[self.method])
            msg = f"method {self.method!r} is for {known}, not for {self.aggregate!r}"
            raise ValueError(msg)
        if self.method == "permutation" and self.delta < MIN_PERMUTATION_DELTA:
            msg = f"delta is {self.delta!r}; with method 'permutation' it must be at least 0.001"
            raise ValueError(msg)
        if (
            self.control in ADAPTIVE_CONTROLS
            and self.lambda_thr is None
            and self.aggregate not in SELF_SUFFICIENT_AGGREGATES
        ):
            msg = (
                f"control {self.control!r} with aggregate {self.aggregate!r} needs lambda_thr, "
                "the share of a window's tuples that its first answer must contain"
            )
            raise ValueError(msg)

    def _check_quality(self) -> None:
        for name in ("eps", "delta", "q", "lambda_thr", "cv", "learning_rate", "kp", "kd"):
            value = getattr(self, name)
            if value is not None or name not in ("lambda_thr", "cv"):
                require(is_number(value), name, value, "a number")
        for name in ("keyed", "dedup"):
            value = getattr(self, name)
            require(isinstance(value, bool), name, value, "True or False")
        for name in ("eps", "delta", "q"):
            value = getattr(self, name)
            require(0 < value < 1, name, value, "between 0 and 1, both excluded")
        require(self.delta >= MIN_DELTA, "delta", self.delta, f"at least {MIN_DELTA}")
        if self.lambda_thr is not None:
            require(0 < self.lambda_thr <= 1, "lambda_thr", self.lambda_thr, "in (0, 1]")
        if self.cv is not None:
            require(0 <= self.cv < float("inf"), "cv", self.cv, "a finite number, at least 0")
        for name in ("learning_rate", "kp", "kd"):
            value = getattr(self, name)
            require(0 <= value < float("inf"), name, value, "a finite number, at least 0")


class Judged(NamedTuple):
    """The controller looked at a window, L after its end."""

    task: int
    order: int
    """0, 1, 2, ... within the task."""
    start_us: int
    key: str
    batch: int
    n_rcv: int
    n_late: int
    n_req: int
    """Tuples that the first answer should have contained; 0 where nothing is required."""
    miss: bool
    alpha: float
    """Factor after this judgement."""


class Progress(NamedTuple):
    """Clock of a task at the end of a batch in which it accepted something or was flushed."""

    task: int
    batch: int
    t_max_us: int
    max_delay_us: int
    slack_us: int
    """K with the alpha that the next arrival will find."""
    wm_us: int
    alpha: float


WORDS: tuple[type, ...] = (
    Result,
    Late,
    Judged,
    Rejected,
    Progress,
    Correction,
    Cleared,
    Revision,
    Correlation,
    Final,
)

REASON_NEGATIVE = "value is negative, which a relative error of a sum does not allow"
