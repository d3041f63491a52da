"""Every planted bug and literal reading is caught, and the reference passes the same input."""

from functools import cache

import pytest

from model.checking.claims import Outcome
from model.checking.shrink import smallest
from model.checking.variants import PLANTED
from model.script import run
from model.script import variants as module
from model.script.claims import judge
from model.script.variants import VARIANTS
from model.vocabulary import Trace, Workload
from properties.stream_packs import collect
from straggler.strategies.script import cases


def broken(workload: Workload, trace: Trace) -> dict[str, str]:
    verdicts = judge(workload, trace).verdicts
    return {v.claim: v.sentence for v in verdicts if v.outcome is Outcome.BROKEN}


@pytest.mark.parametrize("name", sorted(VARIANTS))
def test_a_variant_breaks_its_promise_and_the_reference_does_not(name: str) -> None:
    variant = VARIANTS[name]
    found = broken(variant.example, variant.make_system()(variant.example))
    assert found[variant.promise]
    assert not broken(variant.example, run(variant.example))


@pytest.mark.parametrize("name", sorted(VARIANTS))
def test_an_example_is_as_small_as_it_can_be(name: str) -> None:
    variant = VARIANTS[name]

    def fails(workload: Workload) -> bool:
        return variant.promise in broken(workload, variant.make_system()(workload))

    assert len(smallest(variant.example, fails).arrivals) == len(variant.example.arrivals)


@cache
def drawn() -> tuple[Workload, ...]:
    return (*collect(cases(silent=False), 120, 0), *collect(cases(), 60, 0))


@pytest.mark.parametrize("name", sorted(VARIANTS))
def test_a_variant_is_found_by_drawing(name: str) -> None:
    system, promise = VARIANTS[name].make_system(), VARIANTS[name].promise
    assert any(promise in broken(case, system(case)) for case in drawn())


def test_every_variant_has_a_factory_of_its_name() -> None:
    for name, variant in VARIANTS.items():
        observed = getattr(module, name)()(variant.example)
        assert observed.digest() == variant.make_system()(variant.example).digest()
        assert variant.name == name
    assert any(variant.source != PLANTED for variant in VARIANTS.values())
