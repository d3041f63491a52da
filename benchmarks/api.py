"""The page of the Python interface, from signatures and docstrings of public names.

Rules of this file:

1. Docstrings are in Google's style, which griffe reads. An argument is explained under ``Args:`` of
   its function, else of the class or module around it; a field by its setting or its docstring.
2. An argument without an explanation and a call without an example stop the maker, and its test.
3. The page is a file of Markdown, which GitHub and editors show as it is. MkDocs would add a site
   to build and to host, with the same words.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import griffe

from model.vocabulary.settings import defaults_of, is_int, settings_of
from straggler.cli.render import markdown

ROOT = Path(__file__).resolve().parents[1]
Call: TypeAlias = griffe.Class | griffe.Function
PAGE = """\
# The Python interface

*Written by `make docs` from docstrings; a test checks that it is current and runs the examples.*

These are the public functions and classes, with what each argument takes, its default and its
meaning. Arguments behind `*` are given by name. A length of time is a `Duration`, or a number if
the name ends in its unit: `_us` microseconds, `_s` seconds.

The examples begin with `from straggler import *`; `spark` is a session and `folder` the path of an
empty folder. An example goes on from those above it.
"""
TYPES = (
    "spark_impl.runtime.cell_times: Duration; spark_impl.runtime.storage: Address;"
    " spark_impl.runtime.queries: Sink; spark_impl.runtime.limits: Limit;"
    " spark_impl.retention: Reader; model.vocabulary.join_predicates: Columns Constant Predicate;"
    " spark_impl.join.given: Condition;"
    " spark_impl.grouping.reports: Work; model.vocabulary.trace: System;"
    " straggler.judging.levels: Kinds"
)
"""Types that tables name, in the form of a part."""
GROUPS = (
    {
        "Windows": "spark_impl.over: over Stream.window"
        " Windows.sum|avg|min|max|median|quantile|count Windows.agg Aggregate.store_in"
        " Aggregates.store_in",
        "Aggregates": "spark_impl.aggregates: sum_|avg|min_|max_|median|quantile|count",
        "Answers": "spark_impl.landed: LandedQuery.results LandedQuery.rejected"
        " LandedQuery.progress",
        "The ledger": "spark_impl.runtime.accounts: ledger",
    },
    {
        "Landing": "spark_impl.runtime.landing: Landing",
        "Settings of windows": "model.vocabulary.slack: SlackConfig;"
        " model.vocabulary.watermark: WatermarkConfig",
        "SlackQuery and WatermarkQuery": "spark_impl.windows.query: WindowedQuery",
        "Every query": "spark_impl.runtime.queries: HistoryQuery.flush Runnable.run_available"
        " Runnable.start",
        "Retention": "spark_impl.retention: drop_before",
    },
    {
        "Predicates": "model.vocabulary.join_predicates: Equi|Band|Apart|Between|Ineq|Where|And",
        "Settings of joins": "model.vocabulary.join: JoinConfig;"
        " model.vocabulary.join_load: LoadRules",
        "Joins": "spark_impl.join.query: ChainJoin ChainJoin.join ChainJoin.stream",
        "Queries of a chain in another process": "spark_impl.join.agent: submit withdraw status"
        " ask",
        "The end of a chain": "spark_impl.join.query: ChainStream.flush; spark_impl.join.agent:"
        " answers",
    },
    {
        "Grouping": "spark_impl.grouping.query: Grouping Grouping.assign Grouping.spread"
        " Grouping.stream; model.vocabulary.grouping: GroupingConfig",
    },
    {
        "Scripts": "model.vocabulary.script.config: ScriptConfig; spark_impl.script.query:"
        " ScriptQuery results undefined rejected progress",
    },
    {
        "Sessions": "spark_impl.runtime.session: session",
        "Problems": "spark_impl.runtime.storage: InputProblem; spark_impl.runtime.failures:"
        " QueryProblem",
    },
    {
        "Simulations": "straggler.simulation: simulate",
        "Workloads and traces": "model.vocabulary.workload: Event Fault Workload;"
        " model.vocabulary.trace: Trace",
        "Judging a system": "straggler.judging.judge: judge_workload",
        "Promises of a system": "straggler.judging.promises: assert_keeps_promises",
        "Strategies": "straggler.strategies.examples: workloads collect",
    },
    {"Judging a job": "straggler.jobs.api: judge_job check_job JobBroken JobUndetermined"},
)
"""Parts of the page, with modules and names; the examples of a group run in one test.

Names with ``|`` between them share a heading, a table and an example.
"""


class Argument(NamedTuple):
    """An argument as a call and a table show it."""

    name: str
    takes: str
    """Type of its values, or what a setting allows."""
    default: str
    is_named: bool
    """True if it is given by name only."""
    meaning: str


def page() -> str:
    """Return the page; raise ``ValueError`` if an explanation or an example is missing."""
    header = dict.fromkeys(["type", "definition", "meaning"], "")
    parts = [PAGE, markdown(header, [*_types()]) + "\n"]
    for group in GROUPS:
        for title, part in group.items():
            parts.append(f"## {title}\n")
            for home, calls in names_of(part):
                parts.append(f"Module `{home}`.\n")
                for each in calls:
                    parts += describe([_visit(home)[name] for name in each])
    return "\n".join(parts).rstrip() + "\n"


def names_of(part: str) -> Iterator[tuple[str, list[list[str]]]]:
    """Yield each module of a part, and the names of each heading."""
    for each in part.split("; "):
        home, _, listed = each.partition(": ")
        calls = []
        for name in listed.split():
            owner, dot, last = name.rpartition(".")
            calls.append([f"{owner}{dot}{sibling}" for sibling in last.split("|")])
        yield home, calls


def describe(calls: list[Any]) -> Iterator[str]:
    """Yield the paragraphs on the calls of a heading: texts, arguments and examples."""
    sections = [section for each in calls for section in _sections(each)]
    shown: list[str] = []
    rows: dict[str, Argument] = {}
    for each in calls:
        own = [*arguments_of(each, rows)]
        rows |= {argument.name: argument for argument in own if argument.name not in rows}
        written = "" if issubclass(_kind(each), Exception) else f"({_written(own)})"
        shown.append(f"`{_name(each)}{written}`")
    texts = [str(each.value) for each in sections if each.kind is griffe.DocstringSectionKind.text]
    if len(calls) > 1:
        yield f"### {', '.join(f'`{_name(each)}`' for each in calls)}\n"
        yield "\n".join(f"* {a}: {_plain(b)}" for a, b in zip(shown, texts, strict=True)) + "\n"
    else:
        yield f"### {shown[0]}\n"
        yield from (f"{_linked(text)}\n" for text in texts)
    if rows:
        header = dict.fromkeys(["argument", "takes", "default", "meaning"], "")
        cells = [[f"`{name}`", *each[1:3], each.meaning] for name, each in rows.items()]
        yield markdown(header, [[*map(_cell, row)] for row in cells]) + "\n"
    examples = [each for each in sections if isinstance(each, griffe.DocstringSectionExamples)]
    if not examples and not issubclass(_kind(calls[0]), Exception):
        msg = f"{calls[0].path} has no example"
        raise ValueError(msg)
    for section in examples:
        yield "```pycon\n" + "\n".join(text for _, text in section.value) + "\n```\n"


def arguments_of(found: Call, siblings: Mapping[str, Argument]) -> Iterator[Argument]:
    """Yield the arguments of a call; raise ``ValueError`` if the docstring does not fit them.

    ``siblings`` are the arguments of other calls under its heading.
    """
    own = _explained(found)
    known = _explained(found.parent) | {name: each.meaning for name, each in siblings.items()}
    arguments = [*(_parameters(found) if found.parameters else _fields(_kind(found)))]
    names = [each.name for each in arguments]
    for name in own:
        if name not in names:
            msg = f"{found.path} explains {name!r}, which is no argument of it"
            raise ValueError(msg)
    for each in arguments:
        meaning = own.get(each.name) or each.meaning or known.get(each.name, "")
        if not meaning:
            msg = f"{found.path} does not explain its argument {each.name!r}"
            raise ValueError(msg)
        yield each._replace(meaning=_plain(meaning))


def _parameters(found: Call) -> Iterator[Argument]:
    """Yield the parameters of a function, or of the constructor of a class."""
    kinds = griffe.ParameterKind
    stars = {kinds.var_positional: "*", kinds.var_keyword: "**"}
    for each in found.parameters:
        if each.name != "self":
            star = stars.get(each.kind or kinds.positional_only, "")
            takes = "" if star == "**" else f"`{str(each.annotation).strip(chr(39))}`"
            default = "" if star or each.default is None else _default(found, str(each.default))
            is_named = each.kind is kinds.keyword_only
            yield Argument(star + each.name, takes, default, is_named, "")


def _fields(kind: type) -> Iterator[Argument]:
    """Yield the fields of a dataclass or NamedTuple, with the meaning of their declaration."""
    if not (is_dataclass(kind) or hasattr(kind, "_fields")):
        return
    declared: dict[str, Any] = {}
    for base in [each for each in kind.__mro__ if _path(each.__module__).is_file()]:
        for name, member in _visit(base.__module__)[base.__name__].members.items():
            if name not in declared or not declared[name].docstring:
                declared[name] = member
    settings = settings_of(kind)
    named = {each.name for each in fields(kind) if each.kw_only} if is_dataclass(kind) else set()
    for name, default in defaults_of(kind).items():
        member, setting = declared[name], settings.get(name)
        takes, meaning = f"`{member.annotation}`", _text(member)
        if setting:
            unit = "microseconds" if name.endswith("_us") else "an integer"
            takes, meaning = setting.expected().replace("an integer", unit), setting.help
            takes = f"a tuple, each {takes}" if setting.is_tuple else takes
        text = f"{default:_}" if is_int(default) else repr(default)
        shown = "" if default is MISSING else f"`{text}`"
        yield Argument(name, takes, shown, name in named, meaning)


def _types() -> Iterator[list[str]]:
    """Yield the rows of the types that tables name."""
    for home, calls in names_of(TYPES):
        for (name,) in calls:
            found = _visit(home)[name]
            value = "" if isinstance(found, griffe.Class) else f"`{found.value}`"
            first = _plain(_text(found).partition("\n\n")[0])
            yield [_cell(text) for text in (f"`{name}`", value, first)]


def _text(found: Any) -> str:
    return str(found.docstring.value) if found.docstring else ""


def _sections(found: Any) -> list[griffe.DocstringSection]:
    return found.docstring.parse("google", warnings=False) if found.docstring else []


def _explained(found: Any) -> dict[str, str]:
    """Return the arguments that a docstring explains."""
    return {
        each.name: each.description
        for section in _sections(found)
        if isinstance(section, griffe.DocstringSectionParameters)
        for each in section.value
    }


def _name(found: Call) -> str:
    return found.path.removeprefix(f"{found.module.path}.")


def _kind(found: Any) -> type:
    """Return the class of a call; of a function, that of functions."""
    kind = attrgetter(_name(found))(import_module(found.module.path))
    return kind if isinstance(kind, type) else type(kind)


@cache
def _visit(home: str) -> griffe.Module:
    path = _path(home)
    return griffe.visit(home, path, path.read_text(encoding="utf-8"))


def _path(home: str) -> Path:
    return ROOT.joinpath(*home.split(".")).with_suffix(".py")


def _written(arguments: Iterable[Argument]) -> str:
    """Return arguments as a call shows them; those behind ``*`` are given by name."""
    shown: list[str] = []
    for each in arguments:
        if each.is_named and not any(name.startswith("*") for name in shown):
            shown.append("*")
        shown.append(each.name)
    return ", ".join(shown)


def _default(found: Call, text: str) -> str:
    """Return the default of an argument in Markdown: a constant by its value."""
    if text.isidentifier() and hasattr(module := import_module(found.module.path), text):
        value = getattr(module, text)
        text = repr(str(value) if isinstance(value, Path) else value)
    return f"`{text}`"


def _cell(text: str) -> str:
    return text.replace("|", r"\|")


def _plain(description: str) -> str:
    return _linked(" ".join(description.split()))


def _linked(text: str) -> str:
    """Return the text of a docstring as Markdown."""
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text)
    text = re.sub(r"``([^`]+)``", r"`\1`", text)
    return re.sub(r"docs/([\w-]+\.md)", r"[\1](\1)", text)
