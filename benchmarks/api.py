"""The page of the Python interface, from signatures and docstrings of public names.

The docstrings are in Google's style, which griffe reads.
"""

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import griffe

from straggler.cli.render import markdown

ROOT = Path(__file__).resolve().parents[1]
PAGE = """\
# The Python interface

*Written by `make docs` from docstrings; a test checks that it is current and runs the examples.*

These are the public functions, with every argument, its default and its unit. Arguments behind `*`
are given by name. In the examples, `spark` is a session and `folder` the path of an empty folder.
"""
PARTS = {
    "Windows": "spark_impl.over: over Stream.window Windows.sum Windows.avg Windows.min"
    " Windows.max Windows.median Windows.quantile Windows.count Windows.agg Aggregate.store_in"
    " Aggregates.store_in",
    "Aggregates": "spark_impl.aggregates: sum_ avg min_ max_ median quantile count",
    "Answers": "spark_impl.landed: LandedQuery.results LandedQuery.rejected LandedQuery.progress",
    "The ledger": "spark_impl.runtime.accounts: ledger",
    "Every query": "spark_impl.runtime.queries: Runnable.run_available Runnable.start",
    "Landing": "spark_impl.runtime.landing: Landing",
    "SlackQuery and WatermarkQuery": "spark_impl.windows.query: WindowedQuery",
    "Retention": "spark_impl.retention: drop_before",
    "Joins": "spark_impl.join.query: ChainJoin ChainJoin.join ChainJoin.stream ChainStream.flush",
    "Queries of a chain in another process": "spark_impl.join.agent: submit withdraw status answers"
    " ask",
    "Grouping": "spark_impl.grouping.query: Grouping Grouping.assign Grouping.spread"
    " Grouping.stream",
    "Scripts": "spark_impl.script.query: ScriptQuery ScriptQuery.flush results"
    " undefined rejected progress",
    "Sessions": "spark_impl.runtime.session: session",
    "Simulations": "straggler.simulation: simulate",
    "Judging a job": "straggler.jobs.api: check_job judge_job",
    "Judging a system": "straggler.judging.judge: judge_workload",
    "Promises of a system": "straggler.judging.promises: assert_keeps_promises",
    "Strategies": "straggler.strategies.examples: workloads collect",
}
"""Module and names of each part of the page."""


def page() -> str:
    """Return the page of the Python interface."""
    parts = [PAGE]
    for title, names in PARTS.items():
        home, _, listed = names.partition(": ")
        path = ROOT.joinpath(*home.split(".")).with_suffix(".py")
        module = griffe.visit(home, path, path.read_text(encoding="utf-8"))
        parts += [f"## {title}\n", f"Module `{home}`.\n"]
        for name in listed.split():
            parts += describe(name, module[name])
    return "\n".join(parts).rstrip() + "\n"


def describe(name: str, found: griffe.Class | griffe.Function) -> Iterator[str]:
    """Yield the paragraphs on a public name: its call, its arguments and its examples."""
    yield f"### `{name}({', '.join(_written(found.parameters))})`\n"
    sections = found.docstring.parse("google") if found.docstring else []
    for section in sections:
        if isinstance(section, griffe.DocstringSectionParameters):
            rows = [
                [f"`{each.name}`", _default(found, each.name), _plain(each.description)]
                for each in section.value
            ]
            yield markdown({"argument": "", "default": "", "meaning": ""}, rows) + "\n"
        elif isinstance(section, griffe.DocstringSectionExamples):
            shown = "\n".join(text for _, text in section.value)
            yield f"```pycon\n{shown}\n```\n"
        else:
            yield _linked(str(section.value)) + "\n"


def _written(parameters: griffe.Parameters) -> Iterator[str]:
    """Yield arguments as a call shows them; those behind ``*`` are given by name."""
    stars = {griffe.ParameterKind.var_positional: "*", griffe.ParameterKind.var_keyword: "**"}
    named = griffe.ParameterKind.keyword_only
    is_first = not any(each.kind is griffe.ParameterKind.var_positional for each in parameters)
    for each in parameters:
        if each.name == "self":
            continue
        if each.kind is named and is_first:
            yield "*"
            is_first = False
        yield stars.get(each.kind or named, "") + each.name


def _default(found: griffe.Class | griffe.Function, name: str) -> str:
    """Return the default of an argument in Markdown; nothing if it has to be given."""
    default = None if name.startswith("*") else found.parameters[name].default
    if default is None:
        return ""
    text = str(default)
    if text.isidentifier() and hasattr(module := import_module(found.module.path), text):
        value = getattr(module, text)
        text = repr(str(value) if isinstance(value, Path) else value)
    return f"`{text}`"


def _plain(description: str) -> str:
    return _linked(" ".join(description.split()))


def _linked(text: str) -> str:
    """Return the text of a docstring as Markdown."""
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text)
    text = re.sub(r"``([^`]+)``", r"`\1`", text)
    return re.sub(r"docs/([\w-]+\.md)", r"[\1](\1)", text)
