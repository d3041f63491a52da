"""The decisions of the protocol, one function each, so that one of them can be exchanged.

Source: docs/slack.md, sections 2 and 6.

Rules of this file:

* A decision looks, it changes nothing. ``model/slack/machine.py`` and
  ``model/windows/correction.py`` do what was decided.
* What is decided about windows and corrections in other rooms, too, is in ``model/windows``.
* A planted bug or a literal reading of a paper is this table with an entry replaced
  (``model/slack/variants.py``).
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

from model.slack import control, coverage
from model.vocabulary import Event, SlackConfig, WindowSpec
from model.vocabulary.slack import REASON_FUTURE, REASON_NEGATIVE, REASON_NOT_FINITE
from model.windows.query import Query
from model.windows.rules import (
    Place,
    covered,
    first_open,
    flush_wm_us,
    is_redelivery,
    is_too_far_ahead,
    route,
    trigger,
)

if TYPE_CHECKING:
    from model.slack.machine import Task
    from model.windows.correction import Pair, Pending


def reject(config: SlackConfig, event: Event) -> str | None:
    """Why an arrival takes part in nothing, if it does not."""
    if not isfinite(event.value):
        return REASON_NOT_FINITE
    if event.value < 0 and config.needs_positive_values:
        return REASON_NEGATIVE
    if is_too_far_ahead(config, event):
        return REASON_FUTURE
    return None


@dataclass(frozen=True, slots=True)
class Rules:
    """The table of decisions."""

    reject: Callable[[SlackConfig, Event], str | None] = reject
    is_redelivery: Callable[["Task", Event], bool] = is_redelivery
    slack_us: Callable[[SlackConfig, float, int], int] = control.slack_us
    wm_us: Callable[[int, int], int] = max
    """The watermark from the one before and t_max - K."""
    first_open: Callable[[WindowSpec, int], int] = first_open
    route: Callable[["Task", int, Event], Place] = route
    requirement: Callable[[SlackConfig], coverage.Requirement] = coverage.requirement_of
    law: control.Law = control.law
    flush_wm_us: Callable[["Task"], int] = flush_wm_us
    trigger: Callable[[Query, "Pending", int, bool], str | None] = trigger
    covered: Callable[[Collection["Pair"], Collection["Pair"]], Collection["Pair"]] = covered
    clears_first: bool = False
    """Whether a correction clears pairs before the answers for them are written."""


RULES = Rules()
