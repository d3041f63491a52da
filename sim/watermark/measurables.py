"""Measurables of room ``watermark``: runs that experiments can make."""

from collections.abc import Mapping

from sim.sweep.measurable import Measurable, summaries
from sim.watermark.settings import EXAMPLE, SETTINGS, from_settings
from sim.windows.settings import fit_example

MEASURABLES: Mapping[str, Measurable] = {
    "sim": summaries(from_settings, SETTINGS, EXAMPLE, fit=fit_example)
}
