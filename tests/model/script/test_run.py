"""The reference run is the same wherever it runs, and depends on admitted tuples alone."""

import os
import subprocess
import sys
from itertools import islice

import pytest

from model.script import make_system, run
from model.script.graph import compile_workflows
from model.script.placement import place
from model.script.rules import RULES
from model.script.variants import VARIANTS
from model.vocabulary.script.config import WORDS, Hosted
from tests.model.script.test_placement import random_workflows


def fingerprint() -> str:
    """Return a digest of traces, and of a placement in which much could depend on order."""
    traces = [run(variant.example).digest() for variant in VARIANTS.values()]
    rates = {f"s{number}": 1 + number % 7 for number in range(1_000)}
    graph = compile_workflows(islice(random_workflows(3), 150), rates)
    placed = place(graph, 5, 110, RULES)
    hosts = [sorted(each) for each in placed.hosts]
    return " ".join([*traces, str(sorted(placed.worker.items())), str(hosts)])


def test_nothing_depends_on_the_hash_seed() -> None:
    script = "from tests.model.script.test_run import fingerprint; print(fingerprint())"
    found = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert found == {fingerprint() + "\n"}


@pytest.mark.parametrize("name", sorted(VARIANTS))
def test_cuts_change_nothing(name: str) -> None:
    whole = VARIANTS[name].example
    cut = whole.with_(cuts=tuple(range(len(whole.arrivals) + 1)))
    assert run(cut).digest() == run(whole).digest() == make_system()(whole).digest()


def test_only_known_words_are_recorded_and_sensors_go_where_they_are_needed() -> None:
    example = VARIANTS["late_by_all_sensors"].example
    trace = run(example)
    assert {type(step) for step in trace.steps()} <= set(WORDS)
    assert trace.of(Hosted) == (Hosted(0, "a"), Hosted(0, "b"))
