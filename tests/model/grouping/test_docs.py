"""The lists in docs/grouping.md are complete and current."""

import re
from pathlib import Path

from model.grouping.candidates import CANDIDATES
from model.grouping.variants import VARIANTS
from model.vocabulary.grouping import POLICIES

PAGE = (Path(__file__).parents[3] / "docs" / "grouping.md").read_text(encoding="utf-8")


def test_every_planted_bug_is_listed() -> None:
    rows = re.findall(r"^\| `(\w+)`: (.*) \| .* \|$", PAGE, flags=re.M)
    assert rows == [(name, variant.mistake) for name, variant in VARIANTS.items()]


def test_every_policy_is_described_and_modelled() -> None:
    rules = PAGE[PAGE.index("## 3. Policies") : PAGE.index("## 4. ")]
    assert re.findall(r"^\| `([\w-]+)` \|", rules, flags=re.M) == list(POLICIES)
    assert list(CANDIDATES) == list(POLICIES)
