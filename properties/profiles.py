"""How much is tested: ``dev`` in seconds, ``ci`` always the same, ``nightly`` random and long.

Chosen by ``--hypothesis-profile`` or the environment variable ``HYPOTHESIS_PROFILE``.
"""

from typing import NamedTuple

from hypothesis import HealthCheck, settings

DEFAULT = "dev"


class Effort(NamedTuple):
    """Sizes of what is not drawn by Hypothesis itself."""

    pack: int
    """Cases in a packed Spark job."""
    in_process: int
    """Cases a query for the state operator without Spark."""
    kills: int
    """Times that a driver process is killed, over all queries."""


EFFORTS = {
    "dev": Effort(pack=20, in_process=10, kills=2),
    "ci": Effort(pack=250, in_process=60, kills=10),
    "nightly": Effort(pack=1_000, in_process=500, kills=60),
}


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
