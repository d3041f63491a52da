"""Bugs that the promises alone have to notice on Spark, and the process in which they are planted.

As a pytest plugin (``-p tests.quality.promise_bugs``) this module plants the bugs that
``STRAGGLER_PLANTED`` names, in the driver and in every worker of Spark. It switches off whatever
compares Spark with the simulation, or with the model route by route, because that notices anything.
"""

import base64
import os
import pickle
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from spark_impl.grouping import router
from spark_impl.join.side import Matcher, Side
from spark_impl.join.transport import Links
from spark_impl.runtime import numbering
from spark_impl.runtime.stores import Draft
from spark_impl.slack import requirement
from spark_impl.windows import answers, correction
from straggler.forks import FIRST
from tests.quality.planting import Planted

NAMED = "STRAGGLER_PLANTED"
"""Variable of the environment with the names of the bugs, one a line."""
JOIN = "test_every_pair_is_joined_exactly_once"
IMBALANCE = "test_imbalance_does_not_grow_with_instances"
COVERAGE = "test_first_answers_contain_the_requested_share"
EXACTNESS = "test_every_answer_ends_exact"
ACCOUNTS = "test_every_row_is_in_an_answer_or_in_a_list"


class Bug(NamedTuple):
    """A planted bug, the promise that it breaks, and text that the promise then prints."""

    test: str
    said: str
    planted: Planted


def _some_to_the_last(right: Any, config: Any, *given: Any) -> Any:
    """Send 0.02 log2(n) / n of the tuples to the last instance."""
    found, state = right(config, *given)
    n = config.instances
    found[:: round(n / (0.02 * np.log2(n)))] = n - 1
    return found, state


def _wide(right: Any, self: Matcher, config: Any, *given: Any, **named: Any) -> None:
    right(self, replace(config, window_us=2 * config.window_us), *given, **named)


def _half_required(right: Any, *given: Any, **named: Any) -> Any:
    return right(*given, **named) // 2


def _first_copy_unmet(right: Any, self: Side, block: Any, seen: Any = None) -> Any:
    return right(self, block, None if seen is None else seen + 1)


def _killed_epochs_too(right: Any, self: Draft, kind: str, files: Any) -> None:
    if kind != "matches":
        right(self, kind, files)
        return
    folder = self.store.file(kind, self.batch, "any").parent
    self.take(kind, folder.children(rf"{self.batch:08d}-.*"))


def _never_by_flush(right: Any, settings: Any, row: Mapping[str, int], *given: Any) -> str:
    return str(right(settings, {**row, "flushed": False}, *given))


def _blocks_twice(
    right: Any, self: Links, outgoing: Iterable[tuple[int, Any]], wait_s: float
) -> Any:
    twice = [each for each in outgoing for _ in range(1 + hasattr(each[1], "tuples"))]
    return right(self, twice, wait_s)


def _one_lost(right: Any, rows: pa.RecordBatch, *given: Any) -> Any:
    return right(rows.filter(pa.array(np.arange(rows.num_rows) % 1_000 != 100)), *given)


def _none_refused(right: Any, rows: Any, *given: Any) -> Any:
    return right(rows.where("false"), *given)


BUGS: Mapping[str, Bug] = {
    "pairs lie up to two windows apart": Bug(
        JOIN, "times, due 0 times", Planted(Matcher.__init__, _wide)
    ),
    "some tuples go to the last instance": Bug(
        IMBALANCE, "tuples above", Planted(router.choose, _some_to_the_last)
    ),
    "half of the coverage is required": Bug(
        COVERAGE,
        "windows of task",
        Planted(requirement.required_tuples, _half_required),
    ),
    "a landing loses one row in a thousand": Bug(
        ACCOUNTS, "the answers of windows", Planted(numbering._numbered, _one_lost)
    ),
    "a flush corrects nothing": Bug(
        EXACTNESS, "final answer", Planted(correction._reason, _never_by_flush)
    ),
    "windows do not say what they lack": Bug(
        ACCOUNTS, "the answers of windows", Planted(answers.count_refused, _none_refused)
    ),
    "the first of the copies on their way meets nobody": Bug(
        JOIN, "is there 0 times, due 1 times", Planted(Side.probe, _first_copy_unmet)
    ),
    "an epoch that was killed counts as well": Bug(
        JOIN,
        "is there 2 times, due 1 times",
        Planted(Draft.add, _killed_epochs_too),
    ),
    "every block is sent twice": Bug(JOIN, "sent block", Planted(Links.exchange, _blocks_twice)),
}
"""Bug by name."""


def keep() -> None:
    """Let this process have the bugs that the environment names."""
    for name in os.environ[NAMED].splitlines():
        BUGS[name].planted.keep()


# ------------------------------------------------------------------------------------- the plugin


def pytest_collection_finish() -> None:
    """Plant the bugs, and leave the promises alone to notice them."""
    if NAMED not in os.environ:
        return
    from properties import chain_runs, packs, test_promises

    changed: Any = test_promises
    seen_of_chain: Any = chain_runs.ChainSeen
    _switch_off(changed, "assert_equals_simulation", None)
    _switch_off(changed, "wrong_routes", ())
    _switch_off(seen_of_chain, "compare_pairs_with_simulation", ())
    _switch_off(changed.exchange, "compare_totals", ())
    run_packs = changed.run_packs
    changed.run_packs = _run_once(lambda *given, **how: [*run_packs(*given, **how)])
    changed.run_chain_pack = _run_once(changed.run_chain_pack)
    of_clusters: Any = packs.ClusterRun
    of_clusters.fail = seen_of_chain.fail = _fail  # nothing is shrunk or stored
    keep()
    os.environ[FIRST] = base64.b64encode(pickle.dumps(keep)).decode()


def _switch_off(owner: object, name: str, found: object) -> None:
    """Let a comparison find nothing, and fail if it has another name by now."""
    assert hasattr(owner, name), f"nothing is called {name}"
    setattr(owner, name, lambda *_: found)


def _fail(_seen: object, sentences: list[str], *_rest: object) -> None:
    pytest.fail(" ".join(sentences), pytrace=False)


def _run_once(run_packs: Callable[..., Any]) -> Callable[..., Any]:
    """Remember the last run: Hypothesis runs a failing example twice."""
    last: list[Any] = [None, None]

    def run(spark: object, *packs: object, **how: object) -> Any:
        if last[0] != packs:
            last[:] = packs, run_packs(spark, *packs, **how)
        return last[1]

    return run
