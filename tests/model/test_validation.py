from collections.abc import Iterable

from model.checking.claims import Outcome
from model.checking.validation import validate


def follow(state: int, step: str) -> Iterable[int]:
    """Count up by one, and on "jump" by one or by ten."""
    if step == "up":
        return (state + 1,)
    if step == "jump":
        return (state + 1, state + 10)
    return (state,) if step == f"is {state}" else ()


def test_a_behaviour_of_the_model_holds() -> None:
    verdict = validate((0,), follow, ["up", "up", "is 2"])
    assert (verdict.outcome, verdict.sentence) == (
        Outcome.HOLDS,
        "All 3 recorded steps are allowed.",
    )


def test_every_state_that_the_model_may_be_in_is_followed() -> None:
    assert validate((0,), follow, ["jump", "jump", "is 11"]).outcome is Outcome.HOLDS
    assert validate((0,), follow, ["jump", "is 10", "is 1"]).outcome is Outcome.BROKEN


def test_the_first_step_that_is_not_allowed_is_named() -> None:
    verdict = validate(
        (0,),
        follow,
        ["up", "is 7", "is 8"],
        claim="it counts",
        describe=lambda step: f"{step!r}",
        explain=lambda state, step: (f"it is {state}",),
    )
    assert verdict.outcome is Outcome.BROKEN
    assert verdict.claim == "it counts"
    assert verdict.sentence == "Step 1 is not allowed: 'is 7'."
    assert verdict.witness == ("it is 1",)


def test_an_empty_recording_is_undetermined() -> None:
    assert validate((0,), follow, ()).outcome is Outcome.UNDETERMINED
