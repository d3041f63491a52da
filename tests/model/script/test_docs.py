"""The lists in docs/script.md are complete and current."""

import re
from pathlib import Path

from model.script.variants import VARIANTS
from model.vocabulary.script.tree import FUNCTIONS

PAGE = (Path(__file__).parents[3] / "docs" / "script.md").read_text(encoding="utf-8")


def test_every_planted_bug_is_listed() -> None:
    rows = re.findall(r"^\| `(\w+)`: (.*) \| .* \|$", PAGE, flags=re.M)
    assert rows == [(name, variant.mistake) for name, variant in VARIANTS.items()]


def test_every_function_is_described() -> None:
    calls = re.findall(r"^\| `([a-z ]+)\(", PAGE, flags=re.M)
    assert {name for call in calls for name in call.split()} == set(FUNCTIONS)
