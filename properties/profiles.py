"""Profiles of test effort: ``dev`` is quick, ``ci`` draws more, ``nightly`` is random.

``--hypothesis-profile`` or the environment variable ``HYPOTHESIS_PROFILE`` chooses one.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import pytest
from hypothesis import HealthCheck, settings

ValueT = TypeVar("ValueT")
DEFAULT = "dev"


class Effort(NamedTuple):
    """Numbers of examples that Hypothesis does not count itself."""

    packs: int
    """Number of packed Spark jobs, each with its own query."""
    cases: int
    """Number of cases in a packed job."""
    chains: int
    """Number of chains of room ``join``, one after another."""
    curves: int
    """Number of load curves that chains of room ``join`` follow on Spark."""
    kills: int
    """Number of kills of driver processes, over all queries."""
    tuples: int
    """Number of tuples of a stream on which a probability is tested."""
    processes: int
    """Number of disorder processes on which a probability is tested."""
    promises: int
    """Interval between tested pairs of a process and an aggregate; 1 tests every pair."""
    subsets: int
    """Number of random subsets of a window on which a probability is tested."""


EFFORTS = {
    "dev": Effort(
        packs=1,
        cases=24,
        chains=4,
        curves=6,
        kills=2,
        tuples=120_000,
        processes=1,
        promises=1,
        subsets=4_000,
    ),
    "ci": Effort(
        packs=11,
        cases=32,
        chains=8,
        curves=64,
        kills=4,
        tuples=120_000,
        processes=6,
        promises=2,
        subsets=8_000,
    ),
    "nightly": Effort(
        packs=12,
        cases=200,
        chains=32,
        curves=128,
        kills=12,
        tuples=400_000,
        processes=6,
        promises=1,
        subsets=50_000,
    ),
}


TIMES = {"dev": 1, "ci": 3, "nightly": 16}
"""Number of examples of a promise for each one in profile ``dev``, by profile."""


def register() -> None:
    """Register the profiles with Hypothesis."""
    # A strategy that draws and simulates a plan is slow on purpose.
    patient = [HealthCheck.too_slow, HealthCheck.data_too_large]
    examples = {"dev": 10, "ci": 40, "nightly": 160}
    for name, number in examples.items():
        settings.register_profile(
            name,
            max_examples=number,
            deadline=None,
            derandomize=name == "ci",
            print_blob=True,
            suppress_health_check=patient,
        )


def effort() -> Effort:
    """Return the effort of the profile in force."""
    return EFFORTS.get(settings.get_current_profile_name(), EFFORTS[DEFAULT])


def choose(usual: int, *, nightly: int) -> int:
    """Return ``nightly`` in profile ``nightly``, and ``usual`` in the others."""
    return nightly if settings.get_current_profile_name() == "nightly" else usual


def first(values: Sequence[ValueT], ci: int) -> Sequence[ValueT]:
    """Return the first values: one in profile ``dev``, ``ci`` of them in ``ci``, else all."""
    number = {"dev": 1, "ci": ci}.get(settings.get_current_profile_name(), len(values))
    return values[:number]


def except_in_dev() -> pytest.MarkDecorator:
    """Return a mark that leaves a test out of profile ``dev``, where a smaller one must suffice."""
    is_dev = settings.get_current_profile_name() == "dev"
    return pytest.mark.skipif(is_dev, reason="profile dev leaves it to ci")


def only_nightly() -> pytest.MarkDecorator:
    """Return a mark that leaves a test to profile ``nightly``."""
    is_nightly = settings.get_current_profile_name() == "nightly"
    return pytest.mark.skipif(not is_nightly, reason="once a night suffices")


def times() -> int:
    """Return how many examples a promise has in the profile in force for each one in ``dev``."""
    return TIMES.get(settings.get_current_profile_name(), TIMES[DEFAULT])
