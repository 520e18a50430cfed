"""Plugins and profiles that all tests share.

Hypothesis draws the same examples in every run, so that a red run speaks of the change and not of luck.
``pytest --hypothesis-profile explore`` draws new ones.
"""

from hypothesis import settings

pytest_plugins = ["pytester"]

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None)
settings.load_profile("repeatable")
