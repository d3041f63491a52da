"""The page of settings: every setting of every room, from its declaration."""

from collections.abc import Iterable, Mapping

from model.vocabulary.settings import Setting
from sim.sweep.measurable import measurables
from straggler.options import default_in_words

HEADER = """\
# Settings of timed runs

*Written by `make docs`; a test checks that it is current.*

These settings set up timed runs. Each is given by `--set name=value` to `straggler sim`, and by the
same name in an experiment file ([sweeps.md](sweeps.md)). A name that ends in `_us` takes
microseconds, or a number with a unit: `--set window_us=16s`. Several values are separated by
commas. In parentheses: the meaning of `auto`, `none` or `never`.
"""


def markdown(rooms: Iterable[str]) -> str:
    """Return the page for these rooms."""
    return "\n".join([HEADER, *(_section(room) for room in rooms)])


def _section(room: str) -> str:
    rows = ["| setting | default | allowed | meaning |", "|---|---|---|---|"]
    rows += _rows(measurables(room)["sim"].settings)
    return "\n".join([f"## Room `{room}`", "", *rows, ""])


def _rows(known: Mapping[str, Setting]) -> Iterable[str]:
    for name, setting in known.items():
        allowed = "yes or no" if setting.kind is bool else setting.expected(setting.none)
        allowed = f"a list, each {allowed}" if setting.is_tuple else allowed
        yield f"| `{name}` | `{default_in_words(setting)}` | {allowed} | {setting.help} |"
