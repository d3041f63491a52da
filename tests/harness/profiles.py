"""How much is tested: ``dev`` in seconds, ``ci`` always the same, ``nightly`` random and long.

Chosen by ``--hypothesis-profile`` or the environment variable ``HYPOTHESIS_PROFILE``.
"""

from typing import NamedTuple

from hypothesis import HealthCheck, settings

DEFAULT = "dev"


class Effort(NamedTuple):
    """Sizes of what is not drawn by Hypothesis itself."""

    packs: int
    """Packed Spark jobs, each with a query of its own."""
    cases: int
    """Cases in a packed job."""
    chains: int
    """Chains of room ``join``, one after another."""
    kills: int
    """Times that a driver process is killed, over all queries."""
    tuples: int
    """Tuples of a stream on which a probability is tested."""
    processes: int
    """Disorder processes on which one is tested."""
    promises: int
    """Of so many pairs of a process and an aggregate one is looked at."""
    subsets: int
    """Random subsets of a window on which one is tested."""


EFFORTS = {
    "dev": Effort(
        packs=1, cases=50, chains=4, kills=2, tuples=120_000, processes=1, promises=1, subsets=4_000
    ),
    "ci": Effort(
        packs=8,
        cases=128,
        chains=16,
        kills=10,
        tuples=120_000,
        processes=6,
        promises=2,
        subsets=8_000,
    ),
    "nightly": Effort(
        packs=32,
        cases=500,
        chains=200,
        kills=60,
        tuples=400_000,
        processes=6,
        promises=1,
        subsets=100_000,
    ),
}


SIMULATED = {"dev": 25, "ci": 200, "nightly": 5_000}
"""Drawn clusters that an operator meets in simulated time."""


def register() -> None:
    """Make the profiles known to Hypothesis."""
    # Drawing a plan and simulating it is slow for a strategy, and meant to be.
    patient = [HealthCheck.too_slow, HealthCheck.data_too_large]
    examples = {"dev": 25, "ci": 150, "nightly": 3_000}
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
    """The effort of the profile in force."""
    return EFFORTS.get(settings.get_current_profile_name(), EFFORTS[DEFAULT])


def simulated() -> int:
    """Return how many drawn clusters an operator meets in the profile in force."""
    return SIMULATED.get(settings.get_current_profile_name(), SIMULATED[DEFAULT])
