"""A test run prints what is needed to repeat it."""

import re
import subprocess
import sys
from types import SimpleNamespace

import pytest

from properties import profiles
from tests.house.repository import ROOT


def header(*options: str) -> tuple[str, int]:
    """Return the profile and seed in the header of a run that only collects tests."""
    target = "tests/straggler/test_durations.py"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", target, *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout
    pattern = r"^straggler: --hypothesis-profile=(\w+) --hypothesis-seed=(\d+)$"
    found = re.search(pattern, done.stdout, re.MULTILINE)
    assert found is not None, done.stdout
    return found[1], int(found[2])


def test_a_run_repeats_itself_unless_it_is_nightly() -> None:
    assert header("--hypothesis-profile=ci") == ("ci", 0)
    profile, drawn = header("--hypothesis-profile=nightly")
    assert profile == "nightly"
    assert drawn > 0
    again = header("--hypothesis-profile=nightly", f"--hypothesis-seed={drawn}")
    assert again == (profile, drawn)


@pytest.mark.parametrize("profile", ["dev", "ci", "nightly"])
def test_only_profile_dev_leaves_tests_out(profile: str, monkeypatch: pytest.MonkeyPatch) -> None:
    in_force = SimpleNamespace(get_current_profile_name=lambda: profile)
    monkeypatch.setattr(profiles, "settings", in_force)
    assert profiles.except_in_dev().args == (profile == "dev",)
