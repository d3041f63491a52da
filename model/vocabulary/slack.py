"""Words of room ``slack``: the query's configuration and the steps of its traces.

Source: the hybrid processing model (a K-slack stream module whose buffer is adjusted by a
controller, and a batch module that corrects from history). ``docs/slack.md`` is the
specification; names here follow it.
"""

from dataclasses import KW_ONLY, dataclass
from typing import Annotated, ClassVar, NamedTuple

from model.vocabulary.settings import JsonObject, Setting
from model.vocabulary.windows import (
    AGGREGATES,
    Cleared,
    Correction,
    Final,
    Late,
    Rejected,
    Result,
    Revision,
    WindowQuery,
)

CONTROLS = ("conformal", "fixed", "max", "pd", "pd-clamped", "aq")
ADAPTIVE_CONTROLS = ("conformal", "pd", "pd-clamped", "aq")
SELF_SUFFICIENT_AGGREGATES = ("sum", "count", "avg", "median", "quantile")
"""Aggregates whose required coverage follows from (eps, delta) without ``lambda_thr``."""
METHODS: dict[str, tuple[str, ...]] = {
    "normal": AGGREGATES,
    "rigorous": ("sum", "avg"),
}
"""Methods that compute the required coverage, each with the aggregates that it supports."""
MIN_DELTA = 1e-12
"""Least ``delta``: for much smaller ones 1 - delta is 1 in float64."""


@dataclass(frozen=True, slots=True)
class SlackConfig(WindowQuery):
    """Settings of a continuous sliding-window query with an adaptive K-slack.

    Raise ``ValueError`` with one sentence that names the offending value.

    Examples:
        >>> config = SlackConfig.of(size="10 seconds", slide="10 seconds", tasks=2)
        >>> config.size_us
        10000000
    """

    _: KW_ONLY
    control: Annotated[str, Setting("rule that sets K", choices=CONTROLS)] = "conformal"
    eps: Annotated[
        float, Setting("relative error that the first answer should stay below", above=0, below=1)
    ] = 0.05
    delta: Annotated[
        float,
        Setting("probability that the relative error exceeds eps", at_least=MIN_DELTA, below=1),
    ] = 0.05
    lambda_thr: Annotated[
        float | None,
        Setting(
            "required coverage of a first answer, instead of eps and delta", above=0, at_most=1
        ),
    ] = None
    method: Annotated[
        str,
        Setting("method that finds the required coverage of a sum or an average", choices=METHODS),
    ] = "normal"
    fixed_slack_us: Annotated[int, Setting("K of the control fixed", at_least=0)] = 0
    learning_rate: Annotated[
        float, Setting("step size gamma of the control conformal", at_least=0)
    ] = 0.05
    kp: Annotated[float, Setting("proportional gain of the control pd", at_least=0)] = 0.2
    kd: Annotated[float, Setting("derivative gain of the control pd", at_least=0)] = 4.0
    recent_us: Annotated[
        int, Setting("how long a delay counts as recent under the control aq", at_least=1)
    ] = 10_000_000
    max_slack_us: Annotated[int | None, Setting("upper limit of K (none)", at_least=0)] = None
    start_slack_us: Annotated[
        int | None,
        Setting("least K until 2/delta windows are judged (conformal: L, others: 0)", at_least=0),
    ] = None

    gone: ClassVar[JsonObject] = {**WindowQuery.gone, "sampling": "exchangeable", "cv": None}
    new: ClassVar[JsonObject] = {"start_slack_us": 0}

    @property
    def start_slack(self) -> int:
        """Least K of an adaptive control at the start (us), default applied."""
        if self.start_slack_us is None:
            return self.feedback if self.control == "conformal" else 0
        return self.start_slack_us

    @property
    def needs_values(self) -> bool:
        """True if the required coverage of a window depends on the values in it."""
        return self.lambda_thr is None and self.method != "normal"

    def _check_together(self) -> None:
        if self.aggregate not in METHODS[self.method]:
            known = " and ".join(METHODS[self.method])
            msg = f"method {self.method!r} is for {known}, not for {self.aggregate!r}"
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


class Judged(NamedTuple):
    """Judgement of a window by the controller, L after the end of the window."""

    task: int
    order: int
    """Number 0, 1, 2, ... within the task."""
    start_us: int
    key: str
    batch: int
    n_rcv: int
    n_late: int
    n_req: int
    """Tuples that the first answer should have contained; 0 if nothing is required."""
    miss: bool
    alpha: float
    """Factor alpha after this judgement."""


class Progress(NamedTuple):
    """Clock of a task at the end of a batch that brought it a tuple or a flush."""

    task: int
    batch: int
    t_max_us: int
    max_delay_us: int
    """Largest delay that counts: of all arrivals so far, or of the recent ones (us)."""
    slack_us: int
    """K under the alpha that the next arrival will meet (us)."""
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
    Final,
)
