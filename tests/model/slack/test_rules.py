"""Control laws: one judgement at a time, with numbers worked out by hand."""

import pytest

from model.slack.rules import Coverage, Factor, clip, law, slack_us
from model.vocabulary import SlackConfig

MISSED = Coverage(n_rcv=6, total=10, n_req=8)
MET = Coverage(n_rcv=9, total=10, n_req=8)


def config(control: str, **settings: float) -> SlackConfig:
    return SlackConfig.from_json({"size_us": 1, "slide_us": 1, "control": control, **settings})


def test_conformal_steps_are_balanced_at_half_of_delta() -> None:
    query = config("conformal", delta=0.1, learning_rate=0.2)
    assert law(query, Factor(0.5), MISSED).alpha == pytest.approx(0.5 + 0.2 * 0.95)
    assert law(query, Factor(0.5), MET).alpha == pytest.approx(0.5 - 0.2 * 0.05)
    assert law(query, Factor(1.0), MISSED).alpha == 1.0
    assert law(query, Factor(0.001), MET).alpha == 0.0


def test_pd_is_proportional_and_differential() -> None:
    query = config("pd", kp=0.2, kd=4.0)
    first = law(query, Factor(), MISSED)
    assert first == pytest.approx((1 + 0.2 * 0.2 + 4 * 0.2, 0.2))
    assert law(query, first, MET) == pytest.approx((1.84 - 0.02 + 4 * (-0.1 - 0.2), -0.1))


def test_pd_takes_the_share_that_was_given() -> None:
    assert law(config("pd", lambda_thr=0.6, kp=1, kd=0), Factor(), MISSED) == pytest.approx((1, 0))


def test_pd_winds_up_and_the_clamped_law_does_not() -> None:
    assert law(config("pd"), Factor(1.5), MISSED).alpha > 1.5
    assert law(config("pd-clamped"), Factor(1.0), MISSED).alpha == 1.0
    assert law(config("pd-clamped"), Factor(0.0, 0.2), MET).alpha == 0.0


@pytest.mark.parametrize("control", ["fixed", "max"])
def test_without_feedback_alpha_stays_one(control: str) -> None:
    assert law(config(control), Factor(), MISSED) == Factor(1.0, 0.0)


def test_slack_is_a_share_of_the_largest_delay() -> None:
    assert slack_us(config("conformal"), 0.5, 7) == 3
    assert slack_us(config("pd"), 1.5, 7) == 7
    assert slack_us(config("pd"), -0.5, 7) == 0
    assert slack_us(config("max"), 1.0, 7) == 7
    assert slack_us(config("fixed", fixed_slack_us=9), 1.0, 7) == 9
    assert slack_us(config("fixed", fixed_slack_us=9, max_slack_us=4), 1.0, 7) == 4


def test_clip() -> None:
    assert [clip(alpha) for alpha in (-0.1, 0.0, 0.3, 1.0, 1.1)] == [0.0, 0.0, 0.3, 1.0, 1.0]
