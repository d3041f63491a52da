"""Every planted bug and the literal reading are caught, and the reference passes the same input."""

import pytest

from model.claims import Outcome
from model.diff import compare
from model.vocabulary import Workload
from model.vocabulary.watermark import WORDS
from model.watermark import run
from model.watermark import variants as module
from model.watermark.claims import check
from model.watermark.identity import IDENTITY
from model.watermark.variants import VARIANTS


@pytest.mark.parametrize("name", sorted(VARIANTS))
def test_a_variant_breaks_its_promise_and_the_reference_does_not(name: str) -> None:
    variant = VARIANTS[name]
    observed = variant.make_system()(variant.example)
    broken = {v.claim: v for v in check(variant.example, observed) if v.outcome is Outcome.BROKEN}
    assert variant.promise in broken
    assert broken[variant.promise].sentence
    right = check(variant.example, run(variant.example))
    assert not [verdict for verdict in right if verdict.outcome is Outcome.BROKEN]
    assert variant.promise in {v.claim for v in right if v.outcome is Outcome.HOLDS}


@pytest.mark.parametrize("name", sorted(VARIANTS))
def test_a_variant_differs_from_the_reference(name: str) -> None:
    variant = VARIANTS[name]
    expected, observed = run(variant.example), variant.make_system()(variant.example)
    assert compare(expected, observed, WORDS, identity=IDENTITY).mismatches


def test_every_variant_can_be_named_on_the_command_line() -> None:
    for name, variant in VARIANTS.items():
        assert getattr(module, name) == variant.make_system


def test_the_literal_reading_needs_three_arrivals() -> None:
    variant = VARIANTS["literal"]
    assert len(variant.example.arrivals) == 3
    literal = variant.make_system()
    for pair in ((1, 2), (2, 1), (1, 1)):
        events = tuple(
            event._replace(event_time_us=time_us)
            for event, time_us in zip(variant.example.arrivals, pair, strict=False)
        )
        shorter = Workload("watermark", events, variant.example.config)
        broken = {v.claim for v in check(shorter, literal(shorter)) if v.outcome is Outcome.BROKEN}
        assert variant.promise not in broken


def test_the_literal_reading_as_a_setting_is_the_literal_variant() -> None:
    variant = VARIANTS["literal"]
    config = {**variant.example.config, "reading": "literal"}
    as_setting = run(variant.example.with_(config=config))
    assert as_setting.digest() == variant.make_system()(variant.example).digest()
