"""The first lines of a run repeat it."""

import pytest
from hypothesis import settings

from properties import fixtures


def test_the_first_lines_of_a_run_repeat_it(request: pytest.FixtureRequest, seed: int) -> None:
    header = fixtures.pytest_report_header(request.config)
    profile = settings.get_current_profile_name()
    assert header == f"straggler: --hypothesis-profile={profile} --hypothesis-seed={seed}"
