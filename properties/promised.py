"""Properties that have to meet their cases: ``@promised``.

Rules of this file:

* A property that never met one of its cases proves nothing: it fails as *undetermined*, in every
  profile. Profiles differ in how much is drawn, never in what counts as a pass.
* A property draws once. Its cases are counted on the very runs that are compared.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from inspect import Parameter, signature
from typing import Any

import pytest
from hypothesis import Phase, event, settings
from hypothesis.control import currently_in_test_context

from properties import profiles

REACHED = "reached"
"""Name of the entry in a test's report that has the number of times each case occurred."""
SHOWN = 20
"""Most cases of a property that the summary shows; of more, it shows the needed ones only."""
PATIENCE_S = 600
"""Time limit of a property in profile ``dev``, on a busy machine; others have more."""


class Reached:
    """Counter of the cases that occur during one property, by name."""

    def __init__(self) -> None:
        self.counts = Counter[str]()
        self.left_out = 0
        """Number of drawn examples that were not run."""

    def add(self, counts: Mapping[str, int]) -> None:
        """Add counts to those of the same names; Hypothesis shows them as events."""
        found = {name: count for name, count in counts.items() if count}
        self.counts.update(found)
        if currently_in_test_context():
            for name in found:
                event(name)

    def missing(self, needed: Iterable[str]) -> list[str]:
        """Return the needed cases that never occurred."""
        return [name for name in needed if not self.counts[name]]


def _leave_out_first(test: Any) -> None:
    """Let a property run from its second example on."""
    right = test.hypothesis.inner_test

    @wraps(right)
    def second(*args: Any, reached: Reached, **given: Any) -> None:
        if reached.left_out:
            right(*args, reached=reached, **given)
        reached.left_out += 1

    test.hypothesis.inner_test = second


def promised(*needed: str, examples: int = 1) -> Callable[[Callable[..., None]], Any]:
    """Decorate a property, which gets a counter ``reached``: the needed cases have to occur.

    Hypothesis draws ``examples`` examples in profile ``ci``, fewer in ``dev`` and more in
    ``nightly``. It does not shrink, because what fails on Spark is shrunk as a cluster
    (``straggler/judging/trial``). Hypothesis draws the simplest example first, whatever the seed:
    a property of one example has the second one.
    """

    def decorate(test: Callable[..., None]) -> Any:
        number = profiles.drawn(examples, test.__module__)
        effort = settings(
            max_examples=max(number, 2),
            phases=[Phase.explicit, Phase.generate, *[Phase.reuse][: number - 1]],
            report_multiple_bugs=False,
        )
        if number == 1 and hasattr(test, "hypothesis"):
            _leave_out_first(test)
        drawn: Callable[..., None] = effort(test) if hasattr(test, "hypothesis") else test

        @wraps(drawn)
        def run(*args: Any, request: pytest.FixtureRequest, **given: Any) -> None:
            reached = Reached()
            try:
                drawn(*args, reached=reached, **given)
            finally:
                shown = reached.counts
                if len(shown) > SHOWN:
                    shown = Counter({name: shown[name] for name in needed})
                request.node.user_properties.append((REACHED, dict(shown)))
            if missing := reached.missing(needed):
                pytest.fail(f"undetermined: there were no {', '.join(missing)}", pytrace=False)

        shape = signature(drawn)
        kept = [each for each in shape.parameters.values() if each.name != "reached"]
        own = Parameter("request", Parameter.KEYWORD_ONLY)
        run.__signature__ = shape.replace(parameters=[*kept, own])  # type: ignore[attr-defined]  # pytest reads it
        return pytest.mark.timeout(PATIENCE_S * profiles.times())(run)

    return decorate
