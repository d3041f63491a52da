"""Measurables of room ``watermark``: runs that experiments can make."""

from collections.abc import Mapping

from sim.sweep.measurable import Measurable, summaries
from sim.watermark.settings import SETTINGS, from_settings

MEASURABLES: Mapping[str, Measurable] = {"sim": summaries(from_settings, SETTINGS)}
