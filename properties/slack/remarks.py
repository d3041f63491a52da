"""What a reader should know of a case beside its verdict: is its assumption contradicted?"""

from typing import Any

from model.slack.assumption import ENOUGH_WINDOWS, UNTESTED, Assumption, status_of
from model.vocabulary import SlackConfig, Trace
from model.vocabulary.slack import Correlation
from properties.errors import counted
from properties.rooms import Case, Remark

ASSUMPTION = "values exchangeable and independent of delay"
"""What the status is about. With method ``normal`` a promise also rests on missing sums that are
nearly normal, which nothing here tests."""


def remarks(case: Case, trace: Trace) -> tuple[Remark, ...]:
    """The status of the assumption, for a query whose first answers rest on one."""
    config = SlackConfig.from_json(case.workload.config)
    if not rests_on_assumption(config):
        return ()
    try:
        status = status_of(trace.of(Correlation))
    except (ArithmeticError, TypeError, ValueError):  # no figures that correlations can have
        status = Assumption(UNTESTED, None, None, None, 0)
    data: dict[str, Any] = {"assumption": ASSUMPTION, **status._asdict()}
    return (Remark("assumption", f"{ASSUMPTION}: {told(status)}", data),)


def rests_on_assumption(config: SlackConfig) -> bool:
    """Whether (eps, delta) is promised under an assumption (docs/slack.md, section 7)."""
    is_promised = config.control == "conformal" and config.lambda_thr is None
    return is_promised and config.sampling == "exchangeable" and config.aggregate != "count"


def told(status: Assumption) -> str:
    """The status with its figures, as a phrase."""
    windows = counted(status.windows, "window")
    if status.status == UNTESTED:
        return f"{status.status}, {windows} where {ENOUGH_WINDOWS} are needed"
    interval = f"99.9%: {status.low:+.2f}..{status.high:+.2f}"
    return f"{status.status}, rho {status.rho:+.2f} ({interval}), {windows}"
