"""What a certificate says when an inequality cannot be proved."""

from __future__ import annotations

from marginlab.theory.errors import MarginlabError


class CertificateError(MarginlabError):
    """An inequality that the certificate needs could not be proved; the message names it."""
