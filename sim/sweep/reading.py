"""Experiments in TOML files; docs/sweeps.md explains every key.

Every refusal is a ``ValueError`` with one sentence that names the file and the offending value.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain
from math import isfinite
from pathlib import Path

import sim
from model.vocabulary.settings import JsonObject, Setting, is_number, look_up, nearest
from sim.sweep.expectations import COLUMNS, expectation_of
from sim.sweep.experiment import (
    EFFORTS,
    Experiment,
    Factor,
    Grid,
    Label,
    Level,
    Measure,
    Source,
)
from sim.sweep.measurable import Measurable, measurable
from sim.sweep.toml import Table

CATALOGUE = ("experiments/*.toml", "*/experiments/*.toml")
"""Files of experiments in the package ``sim``: those of several rooms, and those of one room."""
SEEDS = Setting(kind=int, at_least=1, at_most=1_000, default=3)
RUNS_MAX = 20_000

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_COLUMN = re.compile(r"[a-z][a-z0-9_]*")
_OVERRIDES = ("base", "factors", "seeds")
_KEYS = (
    *("name", "room", "run", "fan", "title", "claim", "seeds", "measures"),
    *("source", "published", "base", "factors", *EFFORTS, "expect", "labels"),
)


def catalogue() -> tuple[str, ...]:
    """Return the names of all experiments, sorted."""
    return tuple(sorted(_files()))


def find(name: str) -> Experiment:
    """Return the experiment of that name, or of that file if the name ends in ``.toml``."""
    return load(find_file(name))


def find_file(name: str) -> Path:
    """Return the file of the experiment of that name; a name that ends in ``.toml`` is a file."""
    if name.endswith(".toml"):
        return Path(name)
    return look_up("experiment", name, dict(sorted(_files().items())))


def change_settings(experiment: Experiment, settings: Mapping[str, str]) -> Experiment:
    """Return the experiment with other settings in all of its runs.

    Raise ``ValueError`` for an unknown setting, a bad value, and a setting that a factor varies.
    """
    known = measurable(experiment.room, experiment.run).settings
    levels = {
        key: factor.name
        for grid in experiment.grids.values()
        for factor in grid.factors
        for level in factor.levels
        for key in level.settings
    }
    for key, text in settings.items():
        look_up("setting", key, known).read(text, key)
        if key in levels:
            msg = f"{key} is {text!r}, but {experiment.name} varies it: factor {levels[key]}"
            raise ValueError(msg)
    grids = {
        effort: grid._replace(base={**grid.base, **settings})
        for effort, grid in experiment.grids.items()
    }
    return replace(experiment, grids=grids)


def _files() -> dict[str, Path]:
    """Return the files of all experiments, by name."""
    found = (Path(folder).glob(pattern) for folder in sim.__path__ for pattern in CATALOGUE)
    return {path.stem: path for path in chain.from_iterable(found)}


def load(path: Path) -> Experiment:
    """Return the experiment that a file describes."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
        return parse(values, path.stem)
    except OSError as error:
        msg = f"{str(path)!r} cannot be read: {error.strerror}"
        raise ValueError(msg) from error
    except UnicodeDecodeError:
        msg = f"{str(path)!r} is not text in UTF-8"
        raise ValueError(msg) from None
    except ValueError as error:  # of tomllib, too
        msg = f"{str(path)!r}: {error}"
        raise ValueError(msg) from error


def parse(values: JsonObject, stem: str) -> Experiment:
    """Return the experiment in the file ``stem``.toml, from the values of the file."""
    file = Table(values)
    file.refuse_others(_KEYS)
    name = file.text("name")
    file.require(_NAME.fullmatch(name) is not None, "name", name, "words of a-z, 0-9 with -")
    file.require(name == stem, "name", name, f"that of the file, {stem!r}")
    room, run = file.text("room"), file.text("run", "sim")
    known = measurable(room, run)
    grids = {effort: _grid(file, effort, known) for effort in EFFORTS}
    fan = _fan(file, known, grids)
    measures = _measures(file)
    expectations = tuple([expectation_of(each, grids, measures) for each in file.tables("expect")])
    experiment = Experiment(
        name=name,
        room=room,
        run=run,
        fan=fan,
        title=file.text("title"),
        claim=file.text("claim", ""),
        source=_source(file),
        published=file.table("published", ("says",)).text("says") if file.has("published") else "",
        grids=grids,
        measures=measures,
        expectations=expectations,
        labels=_labels(file, grids, measures),
    )
    _refuse_twice(experiment)
    return experiment


# ------------------------------------------------------------------------------------ what is run


def _grid(file: Table, effort: str, known: Measurable) -> Grid:
    """Return the runs of an effort: those of all efforts, changed by the table of the effort."""
    own = file.table(effort, _OVERRIDES)
    base = {**_settings(file.table("base"), known), **_settings(own.table("base"), known)}
    factors = {factor.name: factor for factor in _factors(file.table("factors"), {}, known)}
    factors |= {each.name: each for each in _factors(own.table("factors"), factors, known)}
    common = file.checked("seeds", SEEDS, SEEDS.default)
    seeds = int(own.checked("seeds", SEEDS, common))
    grid = Grid(base, tuple(factors.values()), seeds)
    runs = seeds
    for factor in grid.factors:
        runs *= len(factor.levels)
    if runs > RUNS_MAX:
        msg = f"{effort} has {runs:,} runs; at most {RUNS_MAX:,} are allowed"
        raise ValueError(msg)
    return grid


def _settings(table: Table, known: Measurable) -> dict[str, str]:
    table.refuse_others(known.settings)
    return {key: _setting(table, key, value, known) for key, value in table.values.items()}


def _setting(table: Table, key: str, value: object, known: Measurable) -> str:
    text = _as_text(table, key, value)
    known.settings[key].read(text, table.place + key)
    return text


def _as_text(table: Table, key: str, value: object) -> str:
    """Return the text of a value in ``--set KEY=TEXT``; commas separate the values of a list."""
    if isinstance(value, list):
        return ",".join([_as_text(table, key, each) for each in value])
    if isinstance(value, bool):
        return "yes" if value else "no"
    good = isinstance(value, str) or (isinstance(value, int | float) and isfinite(value))
    table.require(good, key, value, "a finite number, a text, true, false or a list of those")
    return str(value)


def _factors(table: Table, common: Mapping[str, Factor], known: Measurable) -> Iterator[Factor]:
    for name, value in table.values.items():
        good = _COLUMN.fullmatch(name) is not None and name not in COLUMNS
        table.require(good, name, name, f"letters, digits and _, and none of {', '.join(COLUMNS)}")
        if isinstance(value, dict):
            levels = _named_levels(table.table(name), known)
        else:
            levels = _listed_levels(table, name, common.get(name), known)
        if not levels:
            msg = f"{table.place}{name} has no level"
            raise ValueError(msg)
        factor = Factor(name, levels)
        twice = [label for label, count in Counter(factor.labels).items() if count > 1]
        if twice:
            msg = f"{table.place}{name} has the level {twice[0]!r} twice"
            raise ValueError(msg)
        yield factor


def _named_levels(table: Table, known: Measurable) -> tuple[Level, ...]:
    """Return levels with several settings each."""
    names = list(table.values)
    numbers = [_number(name) for name in names]
    labels: list[Label] = [number for number in numbers if number is not None]
    if len(labels) < len(names):
        labels = list(names)
    settings = [_settings(table.table(name), known) for name in names]
    return tuple([Level(*each) for each in zip(labels, settings, strict=True)])


def _listed_levels(
    table: Table, name: str, common: Factor | None, known: Measurable
) -> tuple[Level, ...]:
    """Return levels from values of a setting, or from names of levels of all efforts."""
    values = table.list(name)
    if common is not None and name not in known.settings:
        levels = {level.label: level for level in common.levels}
        for value in values:
            good = isinstance(value, int | float | str) and value in levels
            table.require(good, name, value, f"one of {', '.join(map(str, levels))}")
        return tuple([levels[value] for value in values])
    if name not in known.settings:
        hint = nearest(name, known.settings)
        msg = f"{table.place}{name} is a list, and there is no setting {name!r}{hint}"
        raise ValueError(msg)
    texts = [_setting(table, name, value, known) for value in values]
    labels: list[Label] = [value for value in values if is_number(value)]
    if len(labels) < len(values):
        labels = list(texts)
    return tuple([Level(label, {name: text}) for label, text in zip(labels, texts, strict=True)])


def _number(text: str) -> int | float | None:
    for kind in (int, float):
        try:
            value = kind(text)
        except ValueError:
            continue
        return value if isfinite(value) else None
    return None


def _fan(file: Table, known: Measurable, grids: Mapping[str, Grid]) -> str:
    if not file.has("fan"):
        return ""
    fan = file.word("fan", known.fans)
    for effort, grid in grids.items():
        levels = [level for factor in grid.factors if factor.name == fan for level in factor.levels]
        good = bool(levels) and all(set(level.settings) == {fan} for level in levels)
        file.require(good, "fan", fan, f"a factor of {effort} that is a list of values")
    return fan


# ------------------------------------------------------------------------------ what is measured


def _measures(file: Table) -> tuple[Measure, ...]:
    measures = []
    for text in file.texts("measures"):
        name, equals, formula = (part.strip() for part in text.partition("="))
        figure, slash, by = name, "", ""
        if equals:
            figure, slash, by = (part.strip() for part in formula.partition("/"))
        good = _COLUMN.fullmatch(name) is not None and name not in COLUMNS
        good = good and bool(figure) and bool(by) == bool(slash)
        example = "like ['mean_rho', 'share = served_hz / ideal_hz']"
        file.require(good, "measures", text, f"a list {example}")
        measures.append(Measure(name, figure, by))
    file.require(bool(measures), "measures", file.list("measures"), "a list of at least one figure")
    return tuple(measures)


def _labels(
    file: Table, grids: Mapping[str, Grid], measures: tuple[Measure, ...]
) -> dict[str, str]:
    table = file.table("labels")
    known = [factor.name for grid in grids.values() for factor in grid.factors]
    known += [measure.name for measure in measures]
    table.refuse_others(list(dict.fromkeys(known)))
    return {name: table.text(name) for name in table.values}


def _source(file: Table) -> Source | None:
    if not file.has("source"):
        return None
    table = file.table("source", Source._fields)
    return Source(table.text("paper"), table.text("where"))


def _refuse_twice(experiment: Experiment) -> None:
    """Refuse two columns with one name."""
    for effort, grid in experiment.grids.items():
        names = [factor.name for factor in grid.factors]
        names += [measure.name for measure in experiment.measures]
        for name in names:
            if names.count(name) > 1:
                msg = f"{name!r} would name two columns of {effort}"
                raise ValueError(msg)
