"""What corrections record about delay and value (docs/slack.md, sections 5 and 6), judged.

Rules of this file:

* Every pair of tuples is compared, for windows of up to SMALL tuples; of larger ones only the
  number of tuples is looked at.
"""

from collections.abc import Sequence

import numpy as np

from model.slack.evidence import Observed, Truth
from model.vocabulary.slack import MAX_CORRELATED, Correlation
from model.windows.evidence import Arrived
from model.windows.findings import Findings, name_of, tuples_of

SMALL = 200


def correlations_are_right(truth: Truth, observed: Observed, findings: Findings) -> None:
    """Each revision of every ceil(W/s)-th window has its correlation, and others have none."""
    config = truth.config
    every = -(-config.size_us // config.slide_us)
    recorded: dict[tuple[int, int, str, int, int], list[Correlation]] = {}
    for correlation in observed.trace.of(Correlation):
        recorded.setdefault(correlation[:5], []).append(correlation)
    asked_for = {
        revision[:5]
        for revisions in observed.revisions.values()
        for revision in revisions
        if revision.start_us // config.slide_us % every == 0 and revision.n <= MAX_CORRELATED
    }
    if asked_for and not recorded:
        findings.undetermined = "The trace has no correlation steps."
        return
    for at in sorted(asked_for | recorded.keys()):
        found = [arrived for arrived in truth.windows.get(at[:3], ()) if arrived.batch <= at[3]]
        steps = recorded.get(at, [])
        name = f"revision {at[4]} of the {name_of(truth, at[:3])}"
        if at not in asked_for:
            findings.add(len(found), f"There is a correlation of {name}, which has none.")
        elif len(steps) != 1:
            findings.add(len(found), f"There are {len(steps)} correlations of {name}.")
        elif steps[0].n != len(found) or (
            len(found) <= SMALL and steps[0][6:] != _sums_over_pairs(found)
        ):
            findings.add(
                len(found),
                f"The correlation of {name} is wrong.",
                tuples_of(truth, at[:3]),
                f"Recorded: {steps[0][5:]}.",
                f"Right is {(len(found), *_sums_over_pairs(found[:SMALL]))}.",
            )


def _sums_over_pairs(found: Sequence[Arrived]) -> tuple[int, int, int]:
    """Sums of x*y, x*x and y*y, x and y from comparing every tuple with every other one."""
    times_us = [arrived.event_time_us for arrived in found]
    delays_us = [max(times_us[: n + 1]) - own for n, own in enumerate(times_us)]
    delay = np.array(delays_us, dtype=np.int64)
    value = np.array([arrived.value for arrived in found])
    x = np.sign(delay[:, None] - delay[None, :]).sum(axis=1).tolist()
    y = (value[:, None] > value[None, :]).sum(axis=1) - (value[:, None] < value[None, :]).sum(
        axis=1
    )
    pairs = list(zip(x, y.tolist(), strict=True))
    return sum(a * b for a, b in pairs), sum(a * a for a, _ in pairs), sum(b * b for _, b in pairs)
