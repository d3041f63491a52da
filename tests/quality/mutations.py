"""Single mutations of a source file: one expression or statement, written otherwise.

A mutation replaces the text of one node of the syntax tree, so everything else of a file stays as
it was. Left alone are what only imports, and what nobody can see: texts, annotations, types of
arguments in ``Callable[...]``, fields of a ``TypedDict``, assertions, and ``strict=True``, the
assertion of a ``zip``.
"""

import ast
import hashlib
import random
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from itertools import chain, zip_longest
from pathlib import Path
from typing import NamedTuple

PACKAGES = ("spark_impl", "sim", "model")
ANSWERS, VERDICTS, RUNS, REST = "answers", "verdicts", "simulated runs", "the rest"
KINDS: Mapping[str, tuple[str, ...]] = {
    REST: (
        # planted bugs, and small worlds of the explorer
        "model/*/variants.py",
        "model/*/scopes.py",
        "model/join/live.py",
        "model/slack/protocol.py",
        # sentences
        "model/vocabulary/script/problems.py",
        "model/vocabulary/extras.py",
        # what a driver or a dashboard is told
        "spark_impl/*/progress.py",
        "spark_impl/runtime/failures.py",
        # how Java starts, what a wheel contains, how fast a machine is
        "spark_impl/class_archive.py",
        "spark_impl/runtime/packages.py",
        "spark_impl/runtime/session.py",
        # experiments, their figures and pages
        "sim/report/*",
        "sim/sweep/*",
        "sim/*/experiments.py",
        "sim/*/*figures.py",
        "sim/*/measurables.py",
        "sim/*/plots.py",
        "sim/*/scenarios.py",
        "sim/*/words.py",
        "sim/*figures.py",
        "sim/scenarios.py",
    ),
    VERDICTS: (
        "model/checking/*",
        "model/*/*claims.py",
        "model/*/evidence.py",
        "model/*/accounts.py",
        # what claims alone ask
        "model/grouping/balance.py",
        "model/join/replay.py",
        "model/windows/course.py",
        # workloads in, traces out: comparisons alone call them
        "spark_impl/*/system.py",
        "spark_impl/runtime/systems.py",
        "spark_impl/join/in_process.py",
    ),
    RUNS: ("sim/*",),
    ANSWERS: ("*",),
}
"""Path patterns by what the code decides; the first that fits holds.

A claim that demands too little passes every right implementation: only planted bugs, in
``tests/quality``, show it. Simulated runs decide times.
"""
_COMPARED: Mapping[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
_COMPUTED: Mapping[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
}
_OPPOSITES = {"min": "max", "minimum": "maximum", "any": "all", "least": "greatest"}
_SWAPPED = _OPPOSITES | {right: left for left, right in _OPPOSITES.items()}


class Mutation(NamedTuple):
    """One change of one file."""

    file: str
    """Path inside the repository."""
    function: str
    """Innermost function or class with its line, ``name:line``; ``:0`` outside of all."""
    line: int
    operator: str
    start: int
    """First and last byte of the replaced text, the latter exclusive."""
    end: int
    right: str
    wrong: str

    @property
    def name(self) -> str:
        """Digest that stays the same if lines are added elsewhere in the file."""
        owner = self.function.partition(":")[0]
        parts = (self.file, owner, self.operator, self.right, self.wrong)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]

    @property
    def kind(self) -> str:
        """Kind of results that the file decides, one of ``KINDS``."""
        return kind_of(self.file)

    def apply(self, source: bytes) -> bytes:
        """Return the source of the file with this mutation."""
        return source[: self.start] + self.wrong.encode() + source[self.end :]


def kind_of(file: str) -> str:
    """Return what the code of a file decides."""
    return next(
        kind for kind, paths in KINDS.items() if any(fnmatchcase(file, each) for each in paths)
    )


def mutations_of(root: Path, file: str) -> list[Mutation]:
    """Return all mutations of a file; of equal ones in a function, the first alone."""
    source = (root / file).read_bytes()
    lines = list(chain([0], *[[len(line)] for line in source.splitlines(keepends=True)]))
    starts = [sum(lines[: number + 1]) for number in range(len(lines))]
    found: dict[str, Mutation] = {}
    for node, function in _nodes(ast.parse(source), ":0"):
        for operator, wrong in _changes(node):
            start = starts[node.lineno - 1] + node.col_offset
            end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
            right = source[start:end].decode()
            each = Mutation(file, function, node.lineno, operator, start, end, right, wrong)
            found.setdefault(each.name, each)
    return list(found.values())


def draw_mutations(root: Path, seed: int, room: str = "") -> Iterator[Mutation]:
    """Yield the mutations of all files in a drawn order: one of every file, then a second one.

    ``room`` leaves only files whose path contains it. Operators of a file take turns, so that the
    many constants do not crowd out the rest.
    """
    files = [
        path.relative_to(root).as_posix()
        for package in PACKAGES
        for path in sorted((root / package).rglob("*.py"))
    ]
    rng = random.Random(seed)
    chosen = [file for file in files if room in file]
    rng.shuffle(chosen)
    columns = [_take_turns(mutations_of(root, file), rng) for file in chosen]
    for row in zip_longest(*columns):
        yield from (each for each in row if each is not None)


def _take_turns(found: Iterable[Mutation], rng: random.Random) -> list[Mutation]:
    by_operator: dict[str, list[Mutation]] = {}
    for each in found:
        by_operator.setdefault(each.operator, []).append(each)
    groups = list(by_operator.values())
    rng.shuffle(groups)
    for group in groups:
        rng.shuffle(group)
    return [each for row in zip_longest(*groups) for each in row if each is not None]


def _nodes(tree: ast.AST, function: str) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """Yield the nodes that may be mutated, each with the function around it."""
    for child in _inside(tree):
        if isinstance(child, ast.JoinedStr | ast.Assert | ast.Import | ast.ImportFrom):
            continue
        inner = function
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            first = child.decorator_list[0] if child.decorator_list else child
            inner = f"{child.name}:{first.lineno}"
        if isinstance(child, ast.expr | ast.stmt):
            yield child, inner
        yield from _nodes(child, inner)


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes directly inside, without annotations, decorators and type variables."""
    skipped = {"annotation", "returns", "decorator_list", "bases", "ctx"}
    match node:
        case ast.Assign([ast.Name("__all__")]):
            return
        case ast.Subscript(ast.Name("Callable")):
            return
        case ast.keyword("strict", ast.Constant(True)) | ast.keyword("total", ast.Constant(False)):
            return
    for name, value in ast.iter_fields(node):
        for each in value if isinstance(value, list) else [value]:
            if name not in skipped and isinstance(each, ast.AST):
                yield each


def _changes(node: ast.expr | ast.stmt) -> Iterator[tuple[str, str]]:
    """Yield the operators that apply to a node, with the text that replaces it."""
    yield from _changed_operators(node)
    yield from _changed_values(node)
    match node:
        case ast.IfExp(test, left, right):
            yield "condition", _text(ast.IfExp(test, right, left))
        case ast.Expr(ast.Call()) | ast.AugAssign() | ast.Raise() | ast.Continue() | ast.Break():
            yield "dropped statement", "pass"


def _changed_operators(node: ast.AST) -> Iterator[tuple[str, str]]:
    match node:
        case ast.Compare(left, [op], [right]):
            for other in _COMPARED[type(op)]:
                yield "comparison", _text(ast.Compare(left, [other()], [right]))
        case ast.BoolOp(op, values):
            yield (
                "and/or",
                _text(ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)),
            )
        case ast.BinOp(left, op, right) if type(op) in _COMPUTED and not _is_text(left, right):
            yield "arithmetic", _text(ast.BinOp(left, _COMPUTED[type(op)](), right))
        case ast.UnaryOp(ast.Not() | ast.USub(), inside):
            yield "sign and not", _text(inside)


def _changed_values(node: ast.AST) -> Iterator[tuple[str, str]]:
    match node:
        case ast.Constant(bool() as value):
            yield "truth", str(not value)
        case ast.Constant(int() | float() as value):
            yield from (("constant", repr(value + by)) for by in (1, -1))
        case ast.Call(ast.Name(name), arguments, keywords) if name in _SWAPPED:
            yield "extremes", _text(ast.Call(ast.Name(_SWAPPED[name]), arguments, keywords))
        case ast.Call(ast.Attribute(value, name), arguments, keywords) if name in _SWAPPED:
            called = ast.Attribute(value, _SWAPPED[name])
            yield "extremes", _text(ast.Call(called, arguments, keywords))
        case ast.List(elts, ast.Load()) if elts:
            yield "container", "[]"
        case ast.List([], ast.Load()):
            yield "container", "[None]"
        case ast.Dict(keys) if keys:
            yield "container", "{}"


def _text(expression: ast.expr) -> str:
    return f"({ast.unparse(expression)})"


def _is_text(*sides: ast.expr) -> bool:
    return any(
        isinstance(each, ast.JoinedStr)
        or (isinstance(each, ast.Constant) and isinstance(each.value, str))
        for each in sides
    )


def summarised(right: str, limit: int = 60) -> str:
    """Return a piece of source on one line, shortened."""
    line = " ".join(right.split())
    return line if len(line) <= limit else f"{line[: limit - 3]}..."
