"""Promise 6 of docs/grouping.md: what a system did is what the reference does, step by step."""

from collections.abc import Collection

from model.checking import diff
from model.checking.diff import Difference
from model.grouping import run
from model.vocabulary import Trace, Workload
from model.vocabulary.grouping import WORDS
from model.windows.evidence import has_exact_sums

IDENTITY = {
    "route": ("seq",),
    "heavy": ("window", "key"),
    "partial": ("window", "instance", "key"),
    "answer": ("window", "key"),
    "rejected": ("seq",),
}
"""Kind of step: its identifying fields. What they do not cover is compared."""


def compare(
    workload: Workload, expected: Trace, observed: Trace, words: Collection[type]
) -> Difference:
    """Exactly, but for sums that depend on the order of the values.

    Those are left to the claims, which know of every sum how much rounding it allows.
    """
    exact = has_exact_sums([event.value for event in workload.arrivals])
    chosen = [word for word in WORDS if word in words]
    ignored = () if exact else ("total",)
    return diff.compare(expected, observed, chosen, identity=IDENTITY, ignore=ignored)


def differences(case: Workload, observed: Trace) -> str:
    """What was observed and is not what the model does, a sentence a line."""
    return "\n".join(compare(case, run(case), observed, WORDS).sentences)
