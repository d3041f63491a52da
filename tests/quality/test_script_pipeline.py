"""Mistakes of the Spark pipeline itself are caught by comparing it with the model.

Each is one expression of a function of the pipeline, written otherwise. The workers run in process;
as they are, they pass the same cases (``properties/test_script.py``).
"""

import pytest

from model.vocabulary import Workload
from properties.telling_scripts import TELLING
from spark_impl.script import (
    admission,
    arithmetic,
    encoding,
    graph,
    kernel,
    placement,
    plan,
    processor,
    run_in_process,
    slices,
)
from tests.quality.mistakes import Mistake
from tests.straggler.agreement import script_differences as differences

MISTAKES = {
    "a tuple at the watermark is late": Mistake(
        admission.admit, "arrivals.ts < wm", "arrivals.ts <= wm"
    ),
    "identities are forgotten between micro-batches": Mistake(
        admission.admit, "_new(arrivals.source_id[candidates], known)", "candidates >= 0"
    ),
    "missing values move the watermark": Mistake(
        admission._fixed, "np.where(finite, ts, -1)", "ts"
    ),
    "redeliveries enter the cluster": Mistake(
        admission._by_disorder, "counted[recognised] = False", "pass"
    ),
    "a tuple at the stamp until which a stream is known is known": Mistake(
        kernel.Log.between, "(since_us, until_us)", '(since_us, until_us), side="right"'
    ),
    "of one stamp the least value is the latest": Mistake(
        arithmetic.operate, "(given, ts)", "(-given, ts)"
    ),
    "latest values are forgotten between micro-batches": Mistake(
        arithmetic.operate, "| (number in latest)", ""
    ),
    "a window is complete a slide too early": Mistake(
        slices.Folds.windows,
        "self._slices.until_us // slide_us)",
        "self._slices.until_us // slide_us + 1)",
    ),
    "slices are forgotten when nothing more comes into them": Mistake(
        slices.prune, "last > slices.until_us", "slices.starts > slices.until_us"
    ),
    "a slice begins at the first cut of all combs": Mistake(
        slices._begins, "np.maximum", "np.minimum"
    ),
    "streams are cut where windows end, not where they begin": Mistake(
        slices._edges, "(0, -length % slide)", "(0,)"
    ),
    "sums come back from the store without their unit": Mistake(
        encoding._folded, 'int(rows["unit"][0])', "0"
    ),
    "a union has nothing twice": Mistake(graph._Sharing._union, "sorted(flat)", "sorted({*flat})"),
    "the sides of a difference may be exchanged": Mistake(
        graph._Sharing._node,
        "inputs if expression.op in _ORDERED else sorted(inputs)",
        "sorted(inputs)",
    ),
    "the worker that gets a component is not charged": Mistake(
        placement.Placing._longest_first, "+= piece.load", "+= 0"
    ),
    "results go to one other worker at most": Mistake(
        plan.Plan.share, "tuple(sorted(others))", "tuple(sorted(others))[:1]"
    ),
    "every worker records the arrivals that it rejects": Mistake(
        plan.Plan.share, "if self.hosts[graph.nodes[n].sensor][0] == worker", ""
    ),
    "what was computed once is recorded once": Mistake(
        processor._repeat_for_statements,
        "[outputs[int(number)] for number in used]",
        "[outputs[int(number)][:1] for number in used]",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_of_the_pipeline_is_found(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    mistake = MISTAKES[name]
    mistake.plant(monkeypatch)
    slices._ways.cache_clear()
    found = [case for case, workload in TELLING.items() if is_wrong(workload)]
    slices._ways.cache_clear()
    assert found


def is_wrong(case: Workload) -> bool:
    """Return whether the pipeline differs from the model; stopping is wrong, too."""
    try:
        return bool(differences(case, run_in_process(case)))
    except (ArithmeticError, LookupError, ValueError):
        return True
