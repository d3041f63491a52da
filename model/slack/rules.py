"""The decisions of the protocol, one function each, so that one of them can be exchanged.

Source: docs/slack.md, sections 2 and 6.

Rules of this file:

* A decision looks, it changes nothing. ``model/slack/machine.py`` and
  ``model/slack/correction.py`` do what was decided.
* A planted bug or a literal reading of a paper is this table with an entry replaced
  (``model/slack/variants.py``).
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple

from model.slack import control, coverage
from model.vocabulary import Event, SlackConfig, WindowSpec
from model.vocabulary.slack import REASON_FUTURE, REASON_NEGATIVE, REASON_NOT_FINITE

if TYPE_CHECKING:
    from model.slack.correction import Pair, Pending
    from model.slack.machine import Task


class Place(NamedTuple):
    """Where a (tuple, window) pair goes."""

    joins: bool
    """The tuple joins the open window."""
    is_late: bool
    """The pair is recorded as late and becomes pending."""


OPEN = Place(joins=True, is_late=False)
LATE = Place(joins=False, is_late=True)


def reject(config: SlackConfig, event: Event) -> str | None:
    """Why an arrival takes part in nothing, if it does not."""
    if not isfinite(event.value):
        return REASON_NOT_FINITE
    if event.value < 0 and config.needs_positive_values:
        return REASON_NEGATIVE
    ahead_us = event.event_time_us - event.arrival_us
    if config.max_future_us is not None and ahead_us > config.max_future_us:
        return REASON_FUTURE
    return None


def is_redelivery(task: "Task", event: Event) -> bool:
    """Whether the identity was accepted before and not forgotten since."""
    accepted_us = task.accepted.get(event.source_id)
    return (
        accepted_us is not None
        and task.config.dedup
        and task.windows.last_end_us(accepted_us) + task.config.feedback > task.wm_us
    )


def first_open(windows: WindowSpec, wm_us: int) -> int:
    """Index of the first window that is not closed: closed is ``end <= wm``."""
    return windows.first_index(wm_us)


def route(task: "Task", index: int, _event: Event) -> Place:
    """Nothing but the watermark decides."""
    return LATE if index < task.first_open else OPEN


def flush_wm_us(task: "Task") -> int:
    """The watermark of a flush: no window stays open, no window stays without judgement."""
    return max(task.wm_us, task.windows.last_end_us(task.t_max_us) + task.config.feedback)


def trigger(config: SlackConfig, pending: "Pending", wm_us: int, is_flush: bool) -> str | None:
    """Why a task with pending pairs is corrected at the end of a batch, if it is."""
    if is_flush:
        return "flush"
    if pending.newest_us - pending.oldest_us > config.gamma_us:
        return "gamma"
    if wm_us - pending.oldest_us > config.max_age:
        return "age"
    return None


def covered(planned: Collection["Pair"], _all_pending: Collection["Pair"]) -> Collection["Pair"]:
    """Pairs that a finished correction clears: those it was made for."""
    return planned


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
    trigger: Callable[[SlackConfig, "Pending", int, bool], str | None] = trigger
    covered: Callable[[Collection["Pair"], Collection["Pair"]], Collection["Pair"]] = covered
    clears_first: bool = False
    """Whether a correction clears pairs before the answers for them are written."""


RULES = Rules()
