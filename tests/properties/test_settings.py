"""Any values of settings are taken, and read again as they are, or refused with one sentence.

Rules that model and Spark share, whose mistakes a comparison cannot see, are held by oracles
that ask nothing of ours: by search, by counting, or in other arithmetic.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import fields, replace
from math import inf, nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.vocabulary import (
    GroupingConfig,
    JoinConfig,
    ScriptConfig,
    SlackConfig,
    WatermarkConfig,
    stable_hash,
    task_of,
)
from model.vocabulary.join import Equi
from model.vocabulary.join_load import Limits, LoadRules
from model.vocabulary.script.config import WATERMARKS
from model.vocabulary.settings import settings_of
from properties.oracles.hashing import xxh64
from straggler.rooms.script.language import parse
from straggler.strategies import collect

CASES = 120
"""Number of drawn settings of one class that together have to be taken and refused."""
SCRIPTS = ScriptConfig((parse('mean = avg("A", 4, 2)', "mine", ["A"]),), (("A", 3_600),))
SETTINGS: Mapping[str, Any] = {
    "slack": SlackConfig(4_000, 2_000),
    "watermark": WatermarkConfig(4_000, 2_000, max_wait_us=3_000),
    "join": JoinConfig(window_us=4_000, queries=(("q", Equi("key")),), workers=2),
    "grouping": GroupingConfig(4),
    "script": SCRIPTS,
    "limits": Limits(0.3, 0.8, 0.9),
    "load": LoadRules(0.3, 0.8, 0.9),
}
"""Valid settings of each class."""
BOUNDS = [bound + each for bound in (0, 1 << 61, 1 << 63) for each in (-1, 0, 1)]
ODD: list[Any] = [
    None,
    True,
    "x",
    "",
    nan,
    inf,
    -0.5,
    0.25,
    1.5,
    (),
    (1,),
    (1, 2, 3, 4),
    [1],
    ((),),
]


@st.composite
def changed(draw: st.DrawFn, name: str) -> dict[str, Any]:
    """Draw other values for one to three settings of a class."""
    right = SETTINGS[name]
    names = draw(st.lists(st.sampled_from(sorted(settings_of(type(right)))), max_size=3))
    words = [value for each in fields(right) if isinstance(value := getattr(right, each.name), str)]
    values = st.sampled_from([*BOUNDS, 2, 100, 5_000, *ODD, *words, *WATERMARKS])
    return {each: draw(values) for each in names}


def refusal(name: str, given: Mapping[str, Any]) -> str:
    """Return the sentence that refuses changed settings; empty if they are taken."""
    try:
        made = replace(SETTINGS[name], **given)
    except ValueError as error:
        return str(error)
    if hasattr(made, "to_json"):
        assert repr(type(made).from_json(made.to_json())) == repr(made)
    return ""


# ------------------------------------------------------------------------------- any values at all


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_are_taken_or_refused_with_one_sentence(name: str, seed: int) -> None:
    outcomes = Counter[bool]()
    for given_values in collect(changed(name), CASES, seed):
        said = refusal(name, given_values)
        outcomes[bool(said)] += 1
        assert "\n" not in said
    assert len(outcomes) == 2, outcomes


# ---------------------------------------------------------------------------------------- hashing

TEXTS = st.text(max_size=20) | st.integers(0, 100).map(lambda n: "München, 日本 " * n)


@given(TEXTS, st.integers(0, 1 << 63), st.integers(1, 50))
def test_a_hash_is_xxh64_and_a_task_its_remainder(text: str, seed: int, tasks: int) -> None:
    signed = xxh64(text.encode(), seed)
    signed -= (1 << 64) * (signed >= 1 << 63)
    assert stable_hash(text, seed) == signed
    usual = xxh64(text.encode(), 42)
    usual -= (1 << 64) * (usual >= 1 << 63)
    assert task_of(text, tasks) == next(n for n in range(tasks) if (usual - n) % tasks == 0)
