"""Words of room ``script``: syntax trees, settings of a set of workflows, steps of its traces.

Source: a framework for real-time aggregation over large numbers of sensors, with a script language
for analysts. ``docs/script.md`` is the specification; names here follow it.
"""
