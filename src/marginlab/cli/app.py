"""Commands and their options. What a command needs is imported inside it, so that ``--help`` is quick."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    name="marginlab",
    help="Theory about attention, checked by machine.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    add_completion=False,
)

Ids = Annotated[list[str] | None, typer.Argument(help="Claim ids or families; all by default.")]


def _version(wanted: bool) -> None:
    if wanted:
        import marginlab

        typer.echo(f"marginlab {marginlab.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Theory about attention, checked by machine."""
    del version  # acted upon by its callback


@app.command()
def check(
    ids: Ids = None,
    tier: Annotated[str, typer.Option(help="quick, full or paper.")] = "quick",
    seeds: Annotated[
        int | None, typer.Option(help="Number of seeds 0..n-1; each claim's own by default.")
    ] = None,
    jobs: Annotated[int, typer.Option(help="Worker processes.")] = 1,
    report: Annotated[str | None, typer.Option(metavar="DIR", help="Folder for the report.")] = None,
    store: Annotated[
        str | None, typer.Option(metavar="DIR", help="Folder that keeps results between runs.")
    ] = None,
) -> None:
    """Run claims with their controls; exit code 0 if and only if every verdict is the expected one."""
    from marginlab.cli.check import check_claims

    raise typer.Exit(check_claims(ids or [], tier=tier, seeds=seeds, jobs=jobs, report=report, store=store))


@app.command("list")
def list_claims(
    ids: Ids = None,
    json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """List the registered claims."""
    from marginlab.cli.listing import print_json, print_list

    print_json(ids or []) if json else print_list(ids or [])


@app.command()
def show(claim_id: Annotated[str, typer.Argument(metavar="ID")]) -> None:
    """Show a claim: statement, source, assumptions, constants, controls."""
    from marginlab.cli.listing import print_claim

    print_claim(claim_id)


@app.command()
def graph(
    svg: Annotated[Path | None, typer.Option(help="Write the drawing to this file instead.")] = None,
) -> None:
    """Draw which claims rest on which."""
    from marginlab.cli.listing import print_graph

    print_graph(svg)


@app.command()
def verify(certificates: Annotated[list[Path], typer.Argument(metavar="CERT.json...")]) -> None:
    """Check certificate files with the independent verifier; exit code 1 if one is rejected."""
    from marginlab.cli.verifying import verify_files

    raise typer.Exit(verify_files(certificates))


@app.command()
def ngrams(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A text.")],
    order: Annotated[int, typer.Option(help="Longest context, 1 to 12.")] = 3,
    unit: Annotated[str, typer.Option(help="byte, char or word (UTF-8).")] = "char",
    tune: Annotated[float, typer.Option(help="Share of the text that parameters are tuned on.")] = 0.2,
    out: Annotated[
        str, typer.Option(metavar="DIR", help="Folder for ngrams.json and ngrams.png.")
    ] = "ngrams-report",
) -> None:
    """Bits per symbol of soft matching and of classical smoothing on a text: tuned on its first part."""
    from marginlab.cli.ngrams import score_file

    score_file(file, order=order, unit=unit, tuned_share=tune, out=out)


@app.command("warm-up")
def warm_up() -> None:
    """Compile the kernels once, so that later runs start at full speed."""
    from marginlab.cli.check import compile_kernels

    compile_kernels()
