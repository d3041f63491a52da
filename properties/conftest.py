"""Loads the plugin of our tests unless a checkout's own ``conftest.py`` has loaded it."""

import pytest

PLUGIN = "properties.fixtures"


def pytest_addoption(pluginmanager: pytest.PytestPluginManager) -> None:
    """Load the plugin while pytest still takes new options."""
    if not pluginmanager.has_plugin(PLUGIN):
        pluginmanager.import_plugin(PLUGIN)
