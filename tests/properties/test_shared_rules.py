"""Rules that model and Spark share, held by oracles that ask nothing of ours.

A comparison of model and Spark cannot see a mistake in a rule that both ask for. Each oracle here
states a rule as its page defines it: by search, by counting, or in other arithmetic.
"""

import random
from collections.abc import Callable, Iterator
from itertools import product
from math import inf, isfinite

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from model.vocabulary import (
    Event,
    GroupingConfig,
    JoinConfig,
    ScriptConfig,
    SlackConfig,
    WatermarkConfig,
    WindowSpec,
    Workload,
    stable_hash,
    task_of,
)
from model.vocabulary.grouping import POLICIES
from model.vocabulary.join import And
from model.vocabulary.join_load import SHEDDING, Limits
from model.vocabulary.script.problems import constant
from model.vocabulary.script.tree import (
    Across,
    Arithmetic,
    Expression,
    Name,
    Number,
    Sensor,
    Statement,
    Union,
    Window,
    Workflow,
    depth_of,
    is_constant,
)
from properties.oracles.hashing import xxh64

SPECS = st.builds(WindowSpec, st.integers(1, 30), st.integers(1, 30))
TIMES = st.integers(-100, 200)

# ---------------------------------------------------------------------------------------- hashing

TEXTS = st.text(max_size=20) | st.integers(0, 100).map(lambda n: "München, 日本 " * n)


@given(TEXTS, st.integers(0, 1 << 63), st.integers(1, 50))
def test_a_hash_is_xxh64_and_a_task_its_remainder(text: str, seed: int, tasks: int) -> None:
    signed = xxh64(text.encode(), seed)
    signed -= (1 << 64) * (signed >= 1 << 63)
    assert stable_hash(text, seed) == signed
    usual = xxh64(text.encode(), 42)
    usual -= (1 << 64) * (usual >= 1 << 63)
    assert task_of(text, tasks) == next(n for n in range(tasks) if (usual - n) % tasks == 0)


# ---------------------------------------------------------------------------------------- windows


def windows_of(size: int, slide: int, ts_us: int) -> list[int]:
    """Return the starts of the windows that contain a time, by search."""
    near = range(ts_us - size - slide, ts_us + slide + 1)
    return [start for start in near if start % slide == 0 and start <= ts_us < start + size]


@given(SPECS, TIMES)
def test_windows_start_at_multiples_of_the_slide(spec: WindowSpec, ts_us: int) -> None:
    starts = windows_of(*spec, ts_us)
    assert [spec.start_us(index) for index in spec.indices(ts_us)] == starts
    assert [spec.end_us(j) for j in spec.indices(ts_us)] == [each + spec.size_us for each in starts]
    after = next(t for t in range(ts_us + 1, ts_us + spec.slide_us + 1) if t % spec.slide_us == 0)
    assert spec.last_end_us(ts_us) == after - spec.slide_us + spec.size_us
    ends = range(ts_us + 1, ts_us + spec.slide_us + 1)
    first_end = next(end for end in ends if (end - spec.size_us) % spec.slide_us == 0)
    assert spec.end_us(spec.first_index(ts_us)) == first_end
    assert spec.start_us(spec.last_index(ts_us)) == after - spec.slide_us


@given(SPECS)
def test_a_pane_is_the_widest_interval_that_no_boundary_cuts(spec: WindowSpec) -> None:
    size, slide = spec
    bounds = {start + more for start in range(0, 31 * slide, slide) for more in (0, size)}
    widest = max(width for width in range(1, 31) if all(bound % width == 0 for bound in bounds))
    assert spec.pane_us == widest


def _watermark(size_us: int, slide_us: int, **more: int | None) -> WatermarkConfig:
    return WatermarkConfig(size_us, slide_us, 1, **more)  # type: ignore[arg-type]  # only times


@pytest.mark.parametrize("make", [SlackConfig, _watermark])
@pytest.mark.parametrize("given_us", [None, 0, 1, 70])
def test_a_window_is_known_after_its_length_and_pending_for_four(
    make: Callable[..., SlackConfig | WatermarkConfig], given_us: int | None
) -> None:
    for size in (1, 7, 20):
        config = make(size, 5, feedback_us=given_us, max_age_us=given_us)
        expected = (size, size + size + size + size) if given_us is None else (given_us, given_us)
        assert (config.feedback, config.max_age) == expected


def test_values_are_looked_at_for_bounds_on_sums_and_averages_alone() -> None:
    aggregates = ("sum", "count", "avg", "min", "max", "median", "quantile")
    controls = ("conformal", "fixed", "max", "pd", "pd-clamped")
    methods, samplings = ("normal", "permutation", "rigorous"), ("exchangeable", "adversarial")
    looked_at = set()
    for aggregate, control, method, sampling, share in product(
        aggregates, controls, methods, samplings, (None, 0.5)
    ):
        if method == "permutation" and aggregate != "sum":
            continue
        if method == "rigorous" and aggregate not in ("sum", "avg"):
            continue
        if share is None and aggregate in ("min", "max") and control not in ("fixed", "max"):
            continue
        config = SlackConfig(
            20,
            10,
            aggregate=aggregate,
            control=control,
            method=method,
            sampling=sampling,
            lambda_thr=share,
        )
        if config.needs_values:
            looked_at.add((aggregate, method, sampling, share))
    assert looked_at == {
        ("sum", "permutation", "exchangeable", None),
        ("sum", "permutation", "adversarial", None),
        ("sum", "rigorous", "exchangeable", None),
        ("sum", "rigorous", "adversarial", None),
        ("sum", "normal", "adversarial", None),
        ("avg", "rigorous", "exchangeable", None),
        ("avg", "rigorous", "adversarial", None),
        ("avg", "normal", "adversarial", None),
    }


# --------------------------------------------------------------------------------------- grouping


@given(st.sampled_from(POLICIES), st.integers(1, 500), st.none() | st.floats(1e-6, 0.9))
def test_a_key_is_heavy_above_a_fifth_or_a_hundredth_of_an_even_share(
    policy: str, instances: int, theta: float | None
) -> None:
    config = GroupingConfig(instances, policy, theta=theta)
    if theta is None:
        keys = instances * (100 if policy == "dag" else 5)
        assert config.theta_share * keys == pytest.approx(1, rel=1e-15)
    else:
        assert config.theta_share == theta
    assert 2 * config.eps_share == config.theta_share
    exact = GroupingConfig(instances, policy, theta=theta, eps=config.theta_share / 4)
    assert 4 * exact.eps_share == config.theta_share


@given(st.sets(st.integers(1, 12), max_size=4), st.integers(0, 14))
def test_the_latest_times_hold_from_their_micro_batch_on(later: set[int], batch: int) -> None:
    firsts = [0, *sorted(later)]
    config = GroupingConfig(2, times_us=tuple((first, (first + 1, 9)) for first in firsts))
    while batch not in firsts:
        batch -= 1
    assert config.times_of(batch) == (batch + 1, 9)
    assert GroupingConfig(3).times_of(batch) == (1, 1, 1)


# ------------------------------------------------------------------------------------------- join


@given(st.dictionaries(st.sampled_from("abc"), st.tuples(st.integers(0, 5), st.integers(0, 5))))
def test_a_query_pairs_the_epochs_of_its_entry_or_all(limits: dict[str, tuple[int, int]]) -> None:
    spans = {
        name: (first, first + more if more else None) for name, (first, more) in limits.items()
    }
    config = JoinConfig(
        1,
        tuple((name, And()) for name in "abc"),
        epochs=tuple((name, *span) for name, span in spans.items()),
    )
    for name in "abc":
        first, last = config.span(name)
        wanted_first, wanted_last = spans.get(name, (0, None))
        for epoch in range(12):
            wanted = wanted_first <= epoch and not (wanted_last is not None and epoch > wanted_last)
            assert wanted == (first <= epoch and (last is None or epoch <= last))


def test_limits_of_load_are_in_order_and_a_change_aims_between() -> None:
    allowed = 0
    for tau0, tau1, tau2 in product([n / 8 for n in range(10)], repeat=3):
        good = tau0 > 0 and 2 * tau0 < tau1 and tau1 <= tau2 and tau2 <= 1
        allowed += good
        try:
            limits = Limits(tau0=tau0, tau1=tau1, tau2=tau2)
        except ValueError:
            assert not good
        else:
            assert good
            assert limits.aim + limits.aim == tau1
    assert allowed > 20


def test_shedding_has_its_published_power() -> None:
    assert dict(SHEDDING) == {"no": 1, "linear": 1, "quadratic": 2}


# -------------------------------------------------------------------------------------- workloads


@given(st.integers(0, 8), st.lists(st.integers(0, 8), max_size=5))
def test_a_micro_batch_is_what_lies_between_two_cuts(n: int, cuts: list[int]) -> None:
    cuts = sorted(cut for cut in cuts if cut <= n)
    arrivals = tuple(Event(seq, seq, "a", seq, 1.0, seq) for seq in range(n))
    groups: dict[int, list[Event]] = {}
    for event in arrivals:
        groups.setdefault(sum(cut <= event.seq for cut in cuts), []).append(event)
    found = [list(batch) for batch in Workload("slack", arrivals, {}, cuts=tuple(cuts)).batches()]
    assert found == [groups[number] for number in sorted(groups)]


# ----------------------------------------------------------------------------------------- script


def drawn_constant(rng: random.Random, depth: int) -> tuple[Expression, str]:
    """Return an expression of numbers and the same in Python, whose operators are C's."""
    if depth == 0 or rng.random() < 0.2:
        value = rng.choice((0.0, 1.0, 2.0, 0.5, 3.0, 1e300, 7.25))
        return Number(value), repr(value)
    op = rng.choice("+-*/")
    (left, left_text), (right, right_text) = (drawn_constant(rng, depth - 1) for _ in range(2))
    return Arithmetic(op, left, right), f"({left_text} {op} {right_text})"


@given(st.randoms(use_true_random=False), st.integers(1, 5))
def test_numbers_are_computed_as_python_computes_them(rng: random.Random, depth: int) -> None:
    expression, text = drawn_constant(rng, depth)
    assert is_constant(expression)
    assert not is_constant(Arithmetic("+", expression, Sensor("a")))
    try:
        expected = eval(text)
    except ZeroDivisionError:
        # Infinite at that place; what is computed from it may be a number again, or none.
        assume(text.count("/") == 1 and text.startswith("("))
        expected = inf
    if isfinite(expected):
        assert constant(expression) == expected


def test_a_division_by_zero_is_not_finite() -> None:
    assert constant(Arithmetic("/", Number(1), Number(0))) == inf


def substituted(expression: Expression, names: dict[str, Expression]) -> Expression:
    """Return an expression in which every name is replaced by what it stands for."""
    if isinstance(expression, Name):
        return names[expression.name]
    if isinstance(expression, Union):
        return Union(tuple(substituted(part, names) for part in expression.parts))
    if isinstance(expression, Window):
        return Window(expression.op, substituted(expression.source, names), 2, 1)
    if isinstance(expression, Across):
        return Across(expression.op, tuple(substituted(part, names) for part in expression.parts))
    if isinstance(expression, Arithmetic):
        left, right = (substituted(each, names) for each in (expression.left, expression.right))
        return Arithmetic(expression.op, left, right)
    return expression


def read_sensors(expression: Expression, *, inside: bool = False) -> Iterator[str]:
    """Yield the sensors under an aggregate or an operation; no name is left."""
    if isinstance(expression, Sensor) and inside:
        yield expression.id
    for part in vars_of(expression):
        yield from read_sensors(part, inside=inside or not isinstance(expression, Union))


def vars_of(expression: Expression) -> tuple[Expression, ...]:
    """Return the expressions directly inside one."""
    found = [getattr(expression, name, ()) for name in ("source", "left", "right", "parts")]
    parts = [each for one in found for each in (one if isinstance(one, tuple) else (one,))]
    return tuple(parts)


def drawn_expression(rng: random.Random, names: list[str], depth: int) -> Expression:
    kinds = ["sensor", "name", "union", "window", "across", "arithmetic"]
    kind = rng.choice(kinds if depth else kinds[:2])
    if kind == "name" and names:
        return Name(rng.choice(names))
    if kind in ("sensor", "name"):
        return Sensor(rng.choice("abcd"))
    parts = tuple(drawn_expression(rng, names, depth - 1) for _ in range(2))
    if kind == "union":
        return Union(parts)
    if kind == "window":
        return Window("max", parts[0], 2, 1)
    return Across("sum", parts) if kind == "across" else Arithmetic("-", parts[0], parts[1])


@given(st.randoms(use_true_random=False))
def test_a_sensor_is_read_if_something_is_computed_from_it(rng: random.Random) -> None:
    statements: list[Statement] = []
    whole: dict[str, Expression] = {}
    expected: set[str] = set()
    for number in range(4):
        expression = drawn_expression(rng, list(whole), 2)
        name = f"s{number}"
        statements.append(Statement(name, expression))
        whole[name] = substituted(expression, whole)
        expected.update(read_sensors(whole[name]))
        assert depth_of(expression) == deepest(expression)
    sensors = tuple((each, 1) for each in "abcd")
    assert ScriptConfig((Workflow("w", tuple(statements)),), sensors).asked_for == expected


def deepest(expression: Expression) -> int:
    """Return the number of expressions on the longest way in."""
    return 1 + max(map(deepest, vars_of(expression)), default=0)
