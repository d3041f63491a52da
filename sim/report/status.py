"""What became of an experiment, in words, a sign and a colour."""

from collections.abc import Mapping
from enum import Enum

from model.checking.claims import Outcome
from sim.report.contents import Entry
from sim.report.markup import Markup, element
from sim.sweep.experiment import Reproduction


class Status(Enum):
    """The verdict of an experiment, or why there is none."""

    REPRODUCED = Reproduction.REPRODUCED.value
    UNDER_ASSUMPTIONS = Reproduction.UNDER_ASSUMPTIONS.value
    NOT_REPRODUCED = Reproduction.NOT_REPRODUCED.value
    REFUTED = Reproduction.REFUTED.value
    UNDETERMINED = "undetermined"
    """Runs or intervals are not enough to tell."""
    BROKEN = "not as expected"
    """An expectation is broken, so that nothing is said of the claim."""
    UNJUDGED = "not judged"
    """Nothing was expected."""


_LOOKS: Mapping[Status, tuple[str, str]] = {
    Status.REPRODUCED: ("✓", "good"),
    Status.UNDER_ASSUMPTIONS: ("✓", "fair"),
    Status.NOT_REPRODUCED: ("–", "open"),
    Status.REFUTED: ("✗", "bad"),
    Status.UNDETERMINED: ("?", "open"),
    Status.BROKEN: ("!", "alert"),
    Status.UNJUDGED: ("·", "plain"),
}
"""A sign and a class of the style sheet."""
MEANINGS: Mapping[Status, str] = {
    Status.REPRODUCED: "what is claimed was seen, with room to spare for the error of the"
    " measurement",
    Status.UNDER_ASSUMPTIONS: "the same, with what the text leaves open filled in, or with a"
    " correction; which ones is said",
    Status.NOT_REPRODUCED: "it was not seen under the conditions that the text gives, or it is an"
    " input here, of which nothing can be found out; neither is to say that it is not so",
    Status.REFUTED: "the contrary was seen, beyond the error of the measurement",
    Status.UNDETERMINED: "runs or intervals are not enough to tell",
    Status.BROKEN: "what was expected was not seen, so that nothing is said of the claim",
    Status.UNJUDGED: "nothing was expected",
}
"""What each says, as the rest of a sentence."""
_SHORT: Mapping[Status, str] = {Status.UNDER_ASSUMPTIONS: "with assumptions"}


def status(entry: Entry) -> Status:
    """What became of it."""
    if entry.verdict is not None:
        return Status(entry.verdict.value)
    if not entry.findings:
        return Status.UNJUDGED
    return Status.BROKEN if entry.outcome is Outcome.BROKEN else Status.UNDETERMINED


def chip(shown: Status, text: str = "", *, is_short: bool = False) -> Markup:
    """A small label of its colour; ``text`` in place of its words."""
    sign, colour = _LOOKS[shown]
    said = text or (_SHORT.get(shown, shown.value) if is_short else shown.value)
    return element(
        "span", element("span", sign, aria_hidden="true"), said, class_=f"verdict {colour}"
    )
