"""Exceptions of marginlab: one sentence that names the rule and the offending value."""

from __future__ import annotations


class MarginlabError(Exception):
    """Base class of every exception that marginlab raises on purpose."""


class InvalidInput(MarginlabError, ValueError):
    """An argument breaks a stated rule; the message names the rule and the value."""


class MethodUnavailable(MarginlabError):
    """The chosen method cannot be used here; the message names the one to use instead."""
