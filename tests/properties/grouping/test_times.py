"""Times that a user or work gives are whole microseconds, one for each instance, or refused."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.vocabulary import GroupingConfig
from spark_impl.grouping.query import times_of
from spark_impl.runtime.storage import InputProblem

GOOD = st.sampled_from([1, 2, 7, 1 << 40, np.int64(5)])
GIVEN = st.one_of(
    st.lists(GOOD, min_size=1, max_size=4),
    st.lists(GOOD | st.sampled_from([0, -1]), min_size=2, max_size=2),
    st.lists(GOOD | st.sampled_from([1.5, "3", None]), max_size=4),
)


@given(st.integers(2, 3), GIVEN)
def test_times_are_taken_as_they_are_or_refused(instances: int, given_times: list[Any]) -> None:
    config = GroupingConfig(instances)
    is_whole = all(isinstance(each, int | np.integer) for each in given_times)
    if is_whole and len(given_times) == instances and all(each >= 1 for each in given_times):
        assert times_of(config, given_times) == tuple(given_times)
        return
    sentence = rf"are not {instances} whole microseconds, each at least 1$"
    with pytest.raises(InputProblem, match=sentence):
        times_of(config, given_times)
