"""Words of room ``script``: syntax trees, settings of a set of workflows, steps of its traces.

Source: a framework for real-time aggregation over large numbers of sensors, with a script language
for analysts. ``docs/script.md`` is the specification; names here follow it.
"""

from model.vocabulary.script.config import ScriptConfig
from model.vocabulary.script.problems import Problem, constant, problems
from model.vocabulary.script.steps import (
    END_US,
    MILLISECOND_US,
    REASON_LATE,
    REASON_NOT_FINITE,
    TIME_END_US,
    WORDS,
    Hosted,
    Rejected,
    Result,
    Undefined,
)
from model.vocabulary.script.tree import (
    ACROSS_OPS,
    ARITHMETIC_OPS,
    DEPTH_MAX,
    FUNCTIONS,
    SPAN_MAX_MS,
    WINDOW_OPS,
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
    children,
    depth_of,
    is_constant,
    walk,
)

__all__ = [
    "ACROSS_OPS",
    "ARITHMETIC_OPS",
    "DEPTH_MAX",
    "END_US",
    "FUNCTIONS",
    "MILLISECOND_US",
    "REASON_LATE",
    "REASON_NOT_FINITE",
    "SPAN_MAX_MS",
    "TIME_END_US",
    "WINDOW_OPS",
    "WORDS",
    "Across",
    "Arithmetic",
    "Expression",
    "Hosted",
    "Name",
    "Number",
    "Problem",
    "Rejected",
    "Result",
    "ScriptConfig",
    "Sensor",
    "Statement",
    "Undefined",
    "Union",
    "Window",
    "Workflow",
    "children",
    "constant",
    "depth_of",
    "is_constant",
    "problems",
    "walk",
]
