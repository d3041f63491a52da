"""Loads the plugin of our tests if no ``conftest.py`` of a checkout has done so."""

import pytest

PLUGIN = "properties.fixtures"


def pytest_addoption(pluginmanager: pytest.PytestPluginManager) -> None:
    """Load the plugin while pytest still takes new options."""
    if not pluginmanager.has_plugin(PLUGIN):
        pluginmanager.import_plugin(PLUGIN)
