"""The timed part of every room: sources, links, stations, a trigger and a fault schedule on SimPy.

No other module of ``sim`` advances time. docs/simulation.md is the specification.
"""
