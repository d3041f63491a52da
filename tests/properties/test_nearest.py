"""Settings, rows, files, stores and queries that just fit are taken, the nearest others refused.

The bounds and defaults of settings, and the fields of answers, are those of the pages.
"""

import re
from collections.abc import Mapping
from typing import Any

import pytest

from model.vocabulary import GroupingConfig, JoinConfig, ScriptConfig, SlackConfig, WatermarkConfig
from model.vocabulary.join_load import LoadRules
from model.vocabulary.settings import settings_of
from tests.properties.declared_settings import (
    ANSWERS,
    APPLIED,
    DECLARED,
    answers_of,
    declared_by,
)
from tests.properties.nearest_inputs import NEAREST_INPUTS, OPENED
from tests.properties.nearest_settings import BUILT, NEAREST, edges_of

_KINDS = SlackConfig, WatermarkConfig, JoinConfig, GroupingConfig, ScriptConfig
CONFIGS: Mapping[str, Any] = {each.__name__.removesuffix("Config").lower(): each for each in _KINDS}


@pytest.mark.parametrize("config", [*_KINDS, LoadRules])
def test_a_setting_ends_where_it_says(config: type) -> None:
    for name, each in settings_of(config).items():
        good, bad = edges_of(each)
        for value in good:
            each.check((value,) if each.is_tuple else value)
        for value, words in bad:
            said = re.escape(f"{name} is {value!r}; it must be {words}")
            with pytest.raises(ValueError, match=f"^{said}$"):
                each.check((value,) if each.is_tuple else value)
        if each.kind is not str or each.choices:
            with pytest.raises(ValueError, match=f"^{name} is 'x'; it must be "):
                each.read("x")


def test_settings_and_answers_are_those_of_the_pages() -> None:
    assert {each.__name__: declared_by(each) for each in (*_KINDS, LoadRules)} == DECLARED
    assert {room: answers_of(room) for room in CONFIGS} == ANSWERS
    for what, given_settings, name, due in APPLIED:
        assert getattr(BUILT[what](given_settings), name) == due, (what, given_settings, name)


@pytest.mark.parametrize(("what", "good", "bad", "said"), [*NEAREST, *NEAREST_INPUTS])
def test_what_does_not_fit_together_is_refused(what: str, good: Any, bad: Any, said: str) -> None:
    {**BUILT, **OPENED}[what](good)
    with pytest.raises(ValueError, match=re.escape(said)):
        {**BUILT, **OPENED}[what](bad)
