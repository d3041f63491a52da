"""A sweep for CI, in the XML that JUnit writes: experiments are suites, expectations are tests."""

import re
from collections.abc import Iterable
from xml.etree import ElementTree

from model.checking.claims import Outcome
from sim.sweep.results import Results

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML cannot hold, such as the colours of an error message."""


def junit(results: Iterable[Results]) -> str:
    """The XML. A run that failed is an error, what is undetermined is skipped."""
    root = ElementTree.Element("testsuites", name="straggler sweep")
    for each in results:
        _add_suite(root, each)
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode", xml_declaration=True)
    return _NOT_IN_XML.sub("\ufffd", text) + "\n"


def _add_suite(root: ElementTree.Element, results: Results) -> None:
    outcomes = [finding.outcome for finding in results.findings]
    errors = len(results.failed) + len(results.problems)
    suite = ElementTree.SubElement(
        root,
        "testsuite",
        name=results.experiment.name,
        tests=str(len(outcomes) + errors),
        failures=str(outcomes.count(Outcome.BROKEN)),
        errors=str(errors),
        skipped=str(outcomes.count(Outcome.UNDETERMINED)),
    )
    name = f"{results.experiment.name}.{results.effort}"
    for finding in results.findings:
        case = _add_case(suite, name, finding.expectation.says)
        if finding.outcome is Outcome.BROKEN:
            ElementTree.SubElement(case, "failure", message=finding.sentence)
        elif finding.outcome is Outcome.UNDETERMINED:
            ElementTree.SubElement(case, "skipped", message=f"undetermined: {finding.sentence}")
    for problem in results.problems:
        ElementTree.SubElement(_add_case(suite, name, "table"), "error", message=problem)
    for failed in results.failed:
        settings = ", ".join(f"{key}={text}" for key, text in failed.run.settings.items())
        case = _add_case(suite, name, f"run, seed {failed.run.seed}, {settings}")
        ElementTree.SubElement(case, "error", message=failed.error).text = failed.again


def _add_case(suite: ElementTree.Element, classname: str, name: str) -> ElementTree.Element:
    return ElementTree.SubElement(suite, "testcase", classname=classname, name=name)
