"""Plugins that the tests of the plugin and of the command line need."""

pytest_plugins = ["pytester"]
