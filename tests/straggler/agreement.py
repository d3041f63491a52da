"""Differences between what a system did and what the model does, for tests."""

from model.checking import diff
from model.script import run as run_script
from model.vocabulary import Trace, Workload
from model.vocabulary.script.config import WORDS as SCRIPT_WORDS
from straggler.rooms.script import room as script


def script_differences(case: Workload, observed: Trace) -> str:
    """Return all differences from the script model, rounding included, one sentence a line."""
    found = diff.compare(run_script(case), observed, SCRIPT_WORDS, identity=script.IDENTITY)
    return "\n".join(found.sentences)
