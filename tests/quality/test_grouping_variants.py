"""Every planted bug and literal reading is caught, and the reference passes the same input."""

import pytest

from model.checking.claims import Outcome
from model.checking.diff import compare
from model.checking.shrink import smallest
from model.checking.variants import PLANTED
from model.grouping import run
from model.grouping import variants as module
from model.grouping.claims import judge
from model.grouping.variants import AGREEMENT, VARIANTS
from model.vocabulary import Trace, Workload
from model.vocabulary.grouping import WORDS

CLAIMED = sorted(name for name, variant in VARIANTS.items() if variant.promise != AGREEMENT)


def broken(workload: Workload, trace: Trace) -> dict[str, str]:
    verdicts = judge(workload, trace).verdicts
    return {v.claim: v.sentence for v in verdicts if v.outcome is Outcome.BROKEN}


def differs(workload: Workload, trace: Trace) -> bool:
    return bool(compare(run(workload), trace, WORDS, identity={}).mismatches)


@pytest.mark.parametrize("name", CLAIMED)
def test_a_variant_breaks_its_promise_and_the_reference_does_not(name: str) -> None:
    variant = VARIANTS[name]
    found = broken(variant.example, variant.make_system()(variant.example))
    assert found[variant.promise]
    assert not broken(variant.example, run(variant.example))


@pytest.mark.parametrize("name", sorted(VARIANTS))
def test_a_variant_differs_from_the_reference(name: str) -> None:
    variant = VARIANTS[name]
    assert differs(variant.example, variant.make_system()(variant.example))


@pytest.mark.parametrize("name", sorted(VARIANTS))
def test_an_example_is_as_small_as_it_can_be(name: str) -> None:
    variant = VARIANTS[name]

    def fails(workload: Workload) -> bool:
        trace = variant.make_system()(workload)
        if variant.promise == AGREEMENT:
            return differs(workload, trace)
        return variant.promise in broken(workload, trace)

    assert len(smallest(variant.example, fails).arrivals) == len(variant.example.arrivals)


def test_one_variant_is_caught_by_comparison_alone() -> None:
    assert set(VARIANTS) - set(CLAIMED) == {"too_few_counters"}
    variant = VARIANTS["too_few_counters"]
    assert not broken(variant.example, variant.make_system()(variant.example))


def test_every_variant_has_a_factory_of_its_name() -> None:
    for name, variant in VARIANTS.items():
        observed = getattr(module, name)()(variant.example)
        assert observed.digest() == variant.make_system()(variant.example).digest()
        assert variant.name == name
    assert any(variant.source != PLANTED for variant in VARIANTS.values())
