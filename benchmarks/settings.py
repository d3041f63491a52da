"""The page of settings: every setting of every room, from its declaration."""

from collections.abc import Iterable, Mapping

from model.vocabulary.settings import Setting
from sim.sweep.measurable import measurable
from straggler.options import default_in_words

HEADER = """\
# Settings of timed runs

*Written by `make docs`; a test checks that it is current.*

These settings set up timed runs. Each is given by `--set name=value` to `straggler sim`, and by the
same name in an experiment file ([sweeps.md](sweeps.md)). A name that ends in `_us` takes
microseconds, or a number with a unit; without `_us` it takes a number with a unit:
`--set window_us=16000000`, `--set window_us=16s` and `--set window=16s` are the same. Several
values are separated by commas. In parentheses: the meaning of `auto`, `none` or `never`.

Every room has an *example*, in which unequal workers, bursts and faults matter.
`straggler sim ROOM` runs it, and so does `simulate("ROOM")` in Python. Given settings are laid over
the example: each replaces the example's own, and what cannot stand beside them is left out, such as
a fault on a worker that the run lacks. If `slack` or `watermark` are given another `scenario`, the
work and faults of the example are fitted to the rate and the length of its stream. `faults=none`
leaves out the faults. An experiment always starts from the defaults.
"""


def markdown(rooms: Iterable[str]) -> str:
    """Return the page for these rooms."""
    return "\n".join([HEADER, *(_section(room) for room in rooms)])


def _section(room: str) -> str:
    rows = ["| setting | default | allowed | meaning |", "|---|---|---|---|"]
    run = measurable(room, "sim")
    rows += _rows(run.settings)
    example = ", ".join([f"`{name}={text}`" for name, text in run.example.items()])
    return "\n".join([f"## Room `{room}`", "", f"Example: {example}.", "", *rows, ""])


def _rows(known: Mapping[str, Setting]) -> Iterable[str]:
    for name, setting in known.items():
        allowed = "yes or no" if setting.kind is bool else setting.expected(setting.none)
        allowed = f"a list, each {allowed}" if setting.is_tuple else allowed
        yield f"| `{name}` | `{default_in_words(setting)}` | {allowed} | {setting.help} |"
