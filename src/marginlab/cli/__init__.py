"""The command line."""

from __future__ import annotations


def main() -> None:
    """Run the command line; an error of ours becomes one sentence and exit code 2, without a traceback."""
    import sys

    from marginlab.cli.app import app
    from marginlab.theory.errors import MarginlabError

    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character shows a question mark, and no traceback.
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="replace")
    try:
        app()
    except MarginlabError as error:
        print(f"marginlab: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(2)
    except OSError as error:
        print(f"marginlab: {error.strerror or error}: {error.filename or 'output'}", file=sys.stderr)  # noqa: T201
        sys.exit(2)
