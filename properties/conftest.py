"""Fixtures of the promises: a count of the cases Spark has reached."""

from tests.properties.conftest import *  # noqa: F403
