"""Profiles of test effort: ``dev`` is quick, ``ci`` repeats its examples, ``nightly`` is random.

``--hypothesis-profile`` or the environment variable ``HYPOTHESIS_PROFILE`` chooses one.
"""

from hypothesis import HealthCheck, settings

DEFAULT = "dev"
NIGHTLY_TIMES = 16
"""Number of examples in ``nightly`` for each in ``ci``, if a property sets its own number."""


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


def choose(usual: int, *, nightly: int) -> int:
    """Return ``nightly`` in profile ``nightly``, and ``usual`` in the others."""
    return nightly if settings.get_current_profile_name() == "nightly" else usual


def times() -> int:
    """Return :data:`NIGHTLY_TIMES` in profile ``nightly``, and 1 in the others."""
    return choose(1, nightly=NIGHTLY_TIMES)


def drawn(examples: int, module: str) -> int:
    """Return how many examples a property of a module draws in the profile in force.

    ``examples`` is their number in ``ci``. In ``dev``, whose seed is fixed, modules of
    ``properties/`` draw three in five, rounded up.
    """
    if settings.get_current_profile_name() == DEFAULT and module.startswith("properties."):
        return -(-examples * 3 // 5)
    return examples * times()
