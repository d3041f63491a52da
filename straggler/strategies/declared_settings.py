"""Bounds and defaults of settings, and the fields of answers, as the pages of the rooms have them.

What model and Spark read from one declaration cannot differ between them, so it is said once more.
"""

from collections.abc import Mapping
from dataclasses import MISSING
from typing import Any

from model.vocabulary.settings import defaults_of, settings_of
from model.vocabulary.trace import kind_of
from straggler.rooms import find_room
from straggler.strategies.telling_settings import SIGNS


def declared_by(config: type) -> Mapping[str, str]:
    """Return the bounds and the default of each field of a class of settings."""
    known = settings_of(config)
    found = {}
    for name, default in defaults_of(config).items():
        bounds = [
            (sign, getattr(known.get(name), word, None)) for word, (sign, *_) in SIGNS.items()
        ]
        words = [f"{sign} {bound}" for sign, bound in bounds if bound is not None]
        found[name] = ", ".join([*words, *([] if default is MISSING else [f"or {default}"])])
    return found


def answers_of(room: str) -> Mapping[str, str]:
    """Return the fields of the answers of a room, by kind of step."""
    return {kind_of(word): " ".join(names) for word, names in find_room(room).answers.items()}


WINDOWS = {
    "size_us": "> 0",
    "slide_us": "> 0",
    "aggregate": "or sum",
    "q": "> 0, < 1, or 0.5",
    "keyed": "or True",
    "tasks": "> 0, or 1",
    "feedback_us": ">= 0, or None",
    "gamma_us": ">= 0, or 5000000",
    "max_age_us": ">= 0, or None",
    "dedup": "or True",
}
DECLARED: Mapping[str, Mapping[str, str]] = {
    "SlackConfig": {
        **WINDOWS,
        "control": "or conformal",
        "eps": "> 0, < 1, or 0.05",
        "delta": ">= 1e-12, < 1, or 0.05",
        "lambda_thr": "> 0, <= 1, or None",
        "method": "or normal",
        "fixed_slack_us": ">= 0, or 0",
        "learning_rate": ">= 0, or 0.05",
        "kp": ">= 0, or 0.2",
        "kd": ">= 0, or 4.0",
        "recent_us": ">= 1, or 10000000",
        "max_slack_us": ">= 0, or None",
        "start_slack_us": ">= 0, or None",
    },
    "WatermarkConfig": {
        **WINDOWS,
        "max_wait_us": ">= 0",
        "reading": "or disorder",
        "k": "> 0, or 50",
        "corrections": "or False",
        "clocks": "or arrivals",
        "upstreams": ">= 0, <= 10000, or 0",
        "insert_every_us": ">= 0, or 0",
        "idle_after_us": "> 0, or None",
    },
    "JoinConfig": {
        "window_us": ">= 0, <= 9223372036854775807",
        "queries": "",
        "workers": "> 0, or 2",
        "block_size": "> 0, or 64",
        "credit": "> 0, or 4",
        "lateness_us": ">= 0, <= 9223372036854775807, or None",
        "idle_after_us": "> 0, or None",
        "r_columns": "or ()",
        "s_columns": "or ()",
        "epochs": "or ()",
        "decisions": "or ()",
    },
    "GroupingConfig": {
        "instances": "> 0",
        "policy": "or tag",
        "times_us": "or ()",
        "latency_us": "or ()",
        "senders": "> 0, or 1",
        "window_tuples": "> 0, or 100000",
        "theta": ">= 1e-15, < 1, or None",
        "eps": ">= 1e-15, < 1, or None",
        "gamma": "> 0, or 0.2",
        "alpha": ">= 0, <= 1, or 0.5",
        "draw_tuples": "> 0, or None",
        "tiers": ">= 0, <= 3, or ()",
        "later_tiers": "or ()",
        "hash_seed": ">= 0, < 18446744073709551616, or 42",
        "top": "> 0, or 3",
    },
    "ScriptConfig": {
        "workflows": "",
        "sensors": "",
        "workers": "> 0, <= 10000, or 1",
        "lateness_us": ">= 0, <= 9223372036854775807, or None",
        "cap_percent": ">= 100, or 125",
        "watermark": "or fixed",
        "cluster": "> 0, or 50",
        "idle_after_us": "> 0, or None",
    },
    "LoadRules": {
        "tau0": "or 0.25",
        "tau1": "or 0.8",
        "tau2": "or 0.8",
        "out_after_us": ">= 0, or 30000000",
        "in_after_us": ">= 0, or 300000000",
        "least": ">= 1, or 1",
        "most": ">= 1, or 1000",
        "capacity": "> 0, or 1000",
        "blocks": "or fixed",
        "shed": "or no",
        "base": ">= 0, or 0.0",
        "margin": ">= 0, or 0.05",
        "smoothing": "> 0, <= 1, or 0.3",
        "block_size": "or 64",
    },
}
"""Bounds and defaults, by class and field."""
OF_WINDOWS = {
    "result": "task start_us key value n_rcv",
    "late": "task start_us key source_id",
    "rejected": "task seq source_id reason",
    "final": "task start_us key value n",
}
ANSWERS: Mapping[str, Mapping[str, str]] = {
    "slack": OF_WINDOWS,
    "watermark": OF_WINDOWS,
    "join": {
        "match": "query r_id s_id",
        "rejected": "stream seq source_id reason",
    },
    "grouping": {
        "answer": "window key n total least greatest distinct top",
        "rejected": "seq reason",
    },
    "script": {
        "result": "workflow name ts_us value",
        "undefined": "workflow name ts_us",
        "rejected": "seq reason",
    },
}
"""Fields that are answers, by room and kind of step; others may be left out."""
APPLIED: tuple[tuple[str, dict[str, Any], str, Any], ...] = (
    ("slack", {}, "feedback", 10),
    ("slack", {"feedback_us": 0}, "feedback", 0),
    ("slack", {}, "start_slack", 0),
    ("slack", {"start_slack_us": None}, "start_slack", 10),
    ("slack", {"start_slack_us": None, "control": "fixed"}, "start_slack", 0),
    ("slack", {}, "max_age", 40),
    ("slack", {"max_age_us": 0}, "max_age", 0),
    ("slack", {}, "needs_values", False),
    ("slack", {"method": "rigorous"}, "needs_values", True),
    ("slack", {"method": "rigorous", "lambda_thr": 0.5}, "needs_values", False),
    ("grouping", {}, "theta_share", 1 / 10),
    ("grouping", {"policy": "dag"}, "theta_share", 1 / 200),
    ("grouping", {"theta": 0.5}, "theta_share", 0.5),
    ("grouping", {}, "eps_share", 1 / 20),
    ("grouping", {"eps": 0.01}, "eps_share", 0.01),
    ("load", {}, "aim", 0.4),
)
"""Facts that follow from settings and defaults: class, settings, property and its value."""
