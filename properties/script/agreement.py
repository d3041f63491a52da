"""Promise 6 of docs/script.md: what a system did is what the reference does, step by step."""

from collections.abc import Collection

from model.checking import diff
from model.checking.diff import Difference
from model.script import run
from model.script.closeness import aligned
from model.vocabulary import Trace, Workload
from model.vocabulary.script import WORDS

IDENTITY = {
    "result": ("workflow", "name", "ts_us"),
    "rejected": ("seq",),
}
"""Kind of step: its identifying fields. What they do not cover is compared."""


def compare(
    workload: Workload, expected: Trace, observed: Trace, words: Collection[type]
) -> Difference:
    """Exactly, but for results of values whose sums float64 rounds: these have to be close."""
    chosen = [word for word in WORDS if word in words]
    near = aligned(workload, expected, observed)
    return diff.compare(expected, near, chosen, identity=IDENTITY)


def differences(case: Workload, observed: Trace) -> str:
    """What was observed and is not exactly what the model does, a sentence a line."""
    found = diff.compare(run(case), observed, WORDS, identity=IDENTITY)
    return "\n".join(found.sentences)
