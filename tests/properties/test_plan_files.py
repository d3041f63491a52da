"""Plans of simulated clusters are read as they were written."""

import json
from typing import Any

from hypothesis import given

from sim.kernel.plain import from_plain, to_plain
from straggler.strategies import grouping, streams


@given(case=streams.timed_cases() | grouping.timed_cases())
def test_a_plan_comes_back_from_its_file(case: Any) -> None:
    plan = case.timing.plan
    # No value equals itself if it is not a number.
    assert repr(from_plain(json.loads(json.dumps(to_plain(plan))))) == repr(plan)
