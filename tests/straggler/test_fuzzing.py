"""Damaged inputs: commands refuse them in one sentence, and nothing is half-written."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from straggler.cli import judge
from straggler.errors import UsageError
from tests.harness import fuzzing
from tests.harness.fuzzed_commands import Form, make_forms

SEED, INPUTS = 1, 150
"""``python -m tests.harness.fuzzing`` runs as many as one likes, with any seed."""


@pytest.fixture(scope="module")
def forms() -> Mapping[str, Form]:
    """Return the commands that are damaged."""
    return make_forms()


def test_commands_work_before_they_are_damaged(forms: Mapping[str, Form]) -> None:
    for name, form in forms.items():
        whole = fuzzing.Input(form, form.words, form.files, is_garbage=False)
        done = fuzzing.run(whole, {})
        assert done.code in (0, 3), (name, done)  # nothing is late in such short streams
        assert list(fuzzing.problems(whole, {}, done)) == []


def test_damaged_inputs_are_refused_in_one_sentence(forms: Mapping[str, Form]) -> None:
    report = fuzzing.fuzz(forms, range(INPUTS), SEED)
    assert not report.found, "\n".join(report.found)
    by_end = {end: sum(n for (_, each), n in report.ends.items() if each == end) for end in "02"}
    assert by_end["2"] > INPUTS / 2, by_end
    assert by_end["0"] > INPUTS / 20, by_end  # such damage goes deeper than the first check
    assert {form for form, end in report.ends if end == "2"} == set(forms)


def swallow(refused: Callable[..., int]) -> Callable[..., int]:
    def run(*arguments: Any) -> int:
        try:
            return refused(*arguments)
        except UsageError:
            return 0

    return run


def write_half(path: Path, _record: object) -> None:
    path.write_text('{"verdict": ', encoding="utf-8")


def write_early(_option: str, path: Path) -> None:
    path.write_text("{}", encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "planted", "found"),
    [
        ("run", swallow(judge.run), "for what cannot be read"),
        ("write_json", write_half, "v.json is half-written"),
        ("refuse_unwritable", write_early, "was changed although the command was refused"),
    ],
    ids=["garbage read", "half written", "written too early"],
)
def test_a_careless_command_is_found(
    forms: Mapping[str, Form],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    planted: Callable[..., Any],
    found: str,
) -> None:
    monkeypatch.setattr(judge, name, planted)
    report = fuzzing.fuzz({"judge slack": forms["judge slack"]}, range(60), SEED)
    assert any(found in problem for problem in report.found), report
