"""JUnit XML, as services for continuous integration read it."""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple
from xml.etree import ElementTree

from model.checking.claims import Outcome

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML cannot hold, such as the colour codes of an error message."""

FAILURE, ERROR, SKIPPED = "failure", "error", "skipped"


class Check(NamedTuple):
    """One check of a suite, which JUnit calls a test case."""

    name: str
    problem: str = ""
    """``failure``, ``error`` or ``skipped``; empty for a check that passed."""
    message: str = ""
    text: str = ""
    """Details, or the command that runs the check again."""
    seconds: float | None = None
    group: str = ""
    """Name under which services list the check; that of the suite if it is empty."""


def check_of(
    name: str, outcome: Outcome, sentence: str, text: str = "", seconds: float | None = None
) -> Check:
    """Return the check for a verdict; an undetermined one is skipped."""
    if outcome is Outcome.BROKEN:
        return Check(name, FAILURE, sentence, text, seconds)
    if outcome is Outcome.UNDETERMINED:
        return Check(name, SKIPPED, f"undetermined: {sentence}", text, seconds)
    return Check(name, seconds=seconds)


def junit(title: str, suites: Mapping[str, Iterable[Check]]) -> str:
    """Return JUnit XML with these suites, by name."""
    root = ElementTree.Element("testsuites", name=title)
    for name, checks in suites.items():
        _add_suite(root, name, list(checks))
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode", xml_declaration=True)
    return _NOT_IN_XML.sub("\ufffd", text) + "\n"


def _add_suite(root: ElementTree.Element, name: str, checks: list[Check]) -> None:
    problems = [check.problem for check in checks]
    suite = ElementTree.SubElement(
        root,
        "testsuite",
        name=name,
        tests=str(len(checks)),
        failures=str(problems.count(FAILURE)),
        errors=str(problems.count(ERROR)),
        skipped=str(problems.count(SKIPPED)),
    )
    for check in checks:
        case = ElementTree.SubElement(
            suite, "testcase", classname=check.group or name, name=check.name
        )
        if check.seconds is not None:
            case.set("time", f"{check.seconds:.3f}")
        if check.problem:
            ElementTree.SubElement(case, check.problem, message=check.message).text = (
                check.text or None
            )
