"""Errata of room ``grouping``."""

from properties.errata import Erratum

ERRATA: tuple[Erratum, ...] = ()
