"""The batch side: correct answers that lack late tuples, from history (docs/slack.md, section 6).

Source: the batch module of the hybrid processing model.

Rules of this file:

* A correction moves in small steps. It makes a plan (a snapshot of the pending pairs and of the
  history), writes one revision a step, then clears the planned pairs.
* A crash between two steps loses the plan and nothing else. Another plan repairs what was left.
* A revision is identified by its batch: written twice in one batch, it counts once.
"""

from model.vocabulary import Step
from model.vocabulary.windows import Cleared, Correction, Revision, WindowQuery
from model.windows.aggregates import aggregate_of
from model.windows.rules import AS_SPECIFIED, CorrectionRules
from model.windows.state import Answer, History, Plan, Store


def due(
    config: WindowQuery,
    store: Store,
    task: int,
    wm_us: int,
    is_flush: bool,
    rules: CorrectionRules = AS_SPECIFIED,
) -> str | None:
    """Return why the task must be corrected at the end of this batch; None if it need not."""
    pending = store.pending.get(task)
    if pending is None or not pending.pairs:
        return None
    return rules.trigger(config, pending, wm_us, is_flush)


def plan(
    config: WindowQuery, store: Store, history: History, task: int, batch: int, reason: str
) -> Plan:
    """Plan a correction of all pending pairs; this first small step changes nothing."""
    aggregate = aggregate_of(config)
    pairs = tuple(store.pending[task].pairs)
    windows = sorted({pair.window for pair in pairs})
    found = [history.values(window.start_us, window.key) for window in windows]
    answers = tuple(
        (window, aggregate(values), len(values))
        for window, values in zip(windows, found, strict=True)
    )
    return Plan(task, batch, reason, pairs, answers)


def advance(
    plan: Plan, store: Store, rules: CorrectionRules = AS_SPECIFIED
) -> tuple[Plan | None, list[Step]]:
    """Take the next small step of a correction; return the plan left, if any, and the steps."""
    must_write = plan.written < len(plan.answers)
    if must_write and (plan.is_cleared or not rules.clears_first):
        steps = _write(plan, store)
        plan = plan._replace(written=plan.written + 1)
    else:
        steps = _clear(plan, store, rules)
        plan = plan._replace(is_cleared=True)
    is_over = plan.is_cleared and plan.written == len(plan.answers)
    return (None if is_over else plan), steps


def _write(plan: Plan, store: Store) -> list[Step]:
    """Write the next revision, in place of one that an earlier plan of this batch wrote."""
    batch, (window, value, n) = plan.batch, plan.answers[plan.written]
    before = store.answers.get(window)
    if before is None:
        revision = 1
    elif before.revision > 0 and before.batch == batch:
        revision = before.revision
    else:
        revision = before.revision + 1
    store.answers[window] = Answer(value, n, revision, batch)
    return [Revision(*window, batch, revision, value, n)]


def _clear(plan: Plan, store: Store, rules: CorrectionRules) -> list[Step]:
    pairs = tuple(rules.covered(plan.pairs, tuple(store.all_pending())))
    for task in sorted({pair.task for pair in pairs}):
        store.pending[task] = store.pending[task].without(pairs)
    steps: list[Step] = [Cleared(*pair[:4], plan.batch) for pair in pairs]
    correction = Correction(plan.task, plan.batch, plan.reason, len(plan.pairs), len(plan.answers))
    return [correction, *steps]
