"""The timed part of every room: sources, links, stations, a trigger and a fault schedule on SimPy.

Nothing else in ``sim`` moves time. docs/simulation.md is the specification.
"""
