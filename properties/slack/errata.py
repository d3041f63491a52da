"""Errata of room ``slack``: where the published design, read literally, breaks its promises.

Source: the hybrid processing model for continuous aggregates over out-of-order streams. Its
sections are cited as it numbers them: 1.1 modules, 1.2 control, 1.3 division of tuples between
the modules, 1.4 trigger of corrections.
"""

from collections.abc import Callable
from functools import partial

from model.slack.variants import VARIANTS
from properties.pages.errata import Erratum, Findings
from properties.slack import control_errata, requirement_errata
from properties.slack.small_streams import smallest

HPM = "hybrid processing model for continuous aggregates over out-of-order streams"
EXACT = "In the end every answer is exact."
WITHIN = "The probability that the first answer is off by eps or more is at most delta."


def _stream_erratum(name: str, variant: str, promise: str, source: str) -> Erratum:
    """One that a few tuples show."""
    bug = VARIANTS[variant]
    return Erratum(name, promise, source, bug.mistake, bug.corrected, partial(smallest, variant))


def _requirement_erratum(
    name: str, variant: str, source: str, search: Callable[[], Findings], note: str = ""
) -> Erratum:
    """One that a single window shows."""
    bug = VARIANTS[variant]
    return Erratum(name, WITHIN, source, bug.mistake, f"{bug.corrected}{note}", search)


ERRATA: tuple[Erratum, ...] = (
    _stream_erratum(
        "closing-rule",
        "early_closing",
        "A tuple that was not delayed is never late.",
        f"{HPM}, 1.3: the condition under which a window closes",
    ),
    _stream_erratum(
        "mixed-tuples",
        "mixed_tuple_lost",
        EXACT,
        f"{HPM}, 1.3: tuples of the second class go to the stream module alone",
    ),
    _stream_erratum(
        "lost-update",
        "lost_update",
        EXACT,
        f"{HPM}, 1.1: both modules write results to one table; which of them may is left open",
    ),
    _stream_erratum(
        "gamma-without-age",
        "gamma_only",
        "A late tuple is corrected for whether or not others follow, or the stream ends.",
        f"{HPM}, 1.4: the only trigger is the span of the pending tuples",
    ),
    _stream_erratum(
        "missing-flush",
        "no_flush",
        EXACT,
        f"{HPM}: what happens when a stream ends is left open",
    ),
    _stream_erratum(
        "slack-out-of-range",
        "slack_winds_up",
        "The buffer is a share of the largest delay.",
        f"{HPM}, 1.2: K = alpha * k, alpha from equation (1)",
    ),
    Erratum(
        "pd-promise",
        WITHIN,
        f"{HPM}, 1.2: quality requirement (eps, delta) and equation (1)",
        "The law brings the mean coverage to the required one, so answers are as good as required.",
        "The share of windows that miss their requirement is what is controlled, and half of delta "
        "is kept for windows that met it (control conformal).",
        control_errata.promise,
    ),
    Erratum(
        "windup",
        "When disorder sets in, the buffer grows until answers are as good as required, within "
        f"{control_errata.RECOVERS_WITHIN} windows.",
        f"{HPM}, 1.2: equation (1) adds up without limit",
        "Alpha sinks in every window that is better than required, with nothing to stop it.",
        "Alpha is clipped to [0, 1] after every judgement (pd-clamped; conformal does so, too).",
        control_errata.windup,
    ),
    _requirement_erratum(
        "smaller-root",
        "smaller_root",
        f"{HPM}, 1.2: refers to Ji et al., DEBS 2015, for the coverage of a sum, without its form",
        requirement_errata.smaller_root,
        " It is an approximation; the method rigorous always requires enough.",
    ),
    _requirement_erratum(
        "normal-quantiles",
        "normal_quantile",
        f"{HPM}, 1.2: refers to Law, Zaniolo 2008 for that of a quantile, without its form",
        requirement_errata.normal_quantile,
    ),
)
