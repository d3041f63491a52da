"""The guide's table of required tuples: ``python -m properties.slack.requirements`` (Markdown).

A window of N tuples with the values 1, 2, ..., N, in percent of its tuples; (eps, delta) and the
control are the defaults. For ``normal`` the coefficient of variation is that of the window.
"""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace

from model.slack.requirement import Known, requirement_of
from model.vocabulary import SlackConfig
from properties.cli.render import markdown

TOTALS = (20, 100, 1_000, 10_000)
QUERY = SlackConfig(1, 1, q=0.9)
ADVERSARIAL: Mapping[str, object] = {"sampling": "adversarial"}
CASES: Mapping[str, Mapping[str, object]] = {
    "`count`": {"aggregate": "count"},
    "`sum`, `normal`": {},
    "`sum`, `rigorous`": {"method": "rigorous"},
    "`sum`, `permutation`": {"method": "permutation"},
    "`sum`, `adversarial`": ADVERSARIAL,
    "`avg`, `normal`": {"aggregate": "avg"},
    "`avg`, `rigorous`": {"aggregate": "avg", "method": "rigorous"},
    "`avg`, `adversarial`": {"aggregate": "avg", **ADVERSARIAL},
    "`median`": {"aggregate": "median"},
    "`median`, `adversarial`": {"aggregate": "median", **ADVERSARIAL},
    "`quantile`, q = 0.9": {"aggregate": "quantile"},
    "`quantile`, q = 0.9, `adversarial`": {"aggregate": "quantile", **ADVERSARIAL},
}
HEADER = {"what": "", "N = 20": ".1f", "100": ".1f", "1,000": ".1f", "10,000": ".1f"}
"""Columns with their formats."""


def percent(config: SlackConfig, total: int) -> float:
    """Of the tuples of a window of so many, how many its first answer must contain."""
    values = [float(value) for value in range(1, total + 1)]
    # Of 1..N the variance is (N^2 - 1)/12, the mean (N + 1)/2.
    cv_squared = (total - 1) / (3 * (total + 1))
    return 100 * requirement_of(config)(Known(total, cv_squared, values)) / total


def table(totals: tuple[int, ...] = TOTALS) -> Iterator[tuple[str | float, ...]]:
    """A row for every rule."""
    for name, changes in CASES.items():
        config = replace(QUERY, **changes)  # type: ignore[arg-type]
        yield (name, *(percent(config, total) for total in totals))


def main() -> None:
    """Print the table."""
    sys.stdout.write(markdown(HEADER, list(table())) + "\n")


if __name__ == "__main__":
    main()
