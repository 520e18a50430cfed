"""``marginlab ngrams``: every estimator on a text, as a table, a JSON file and a picture."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import marginlab
from marginlab.theory.errors import InvalidInput
from marginlab.theory.ngrams.text import (
    FLOOR,
    TextScores,
    TextTokens,
    check_request,
    score_text,
    text_tokens,
)


def score_file(path: Path, *, order: int, unit: str, tuned_share: float, out: str) -> None:
    """Read a file, score the estimators on it, print the table, write ``ngrams.json`` and ``ngrams.png``."""
    if not out:  # an empty path is the current folder, which nobody means
        raise InvalidInput("--out needs the name of a folder, got an empty one.")
    if not path.is_file():
        raise InvalidInput(f"a text is a file, and '{path}' is {'a folder' if path.is_dir() else 'none'}.")
    text = text_tokens(path.read_bytes(), unit)
    check_request(len(text.tokens), order, tuned_share)
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"--out needs a folder to write to, got '{folder}': {error.strerror}.") from None
    console, clock = Console(highlight=False), time.perf_counter()
    with console.status(f"{len(text.tokens)} symbols"):
        scores = score_text(text.tokens, text.vocab_size, order, tuned_share=tuned_share)
    document = scores_document(path.name, text, scores, seconds=time.perf_counter() - clock)
    _print(console, document)
    from marginlab.paper_figs.ngrams_text import draw_text_scores

    files = {
        "ngrams.json": (json.dumps(document, indent=1, allow_nan=False) + "\n").encode(),
        "ngrams.png": draw_text_scores(document),
    }
    for name, content in files.items():
        try:
            (folder / name).write_bytes(content)
        except OSError as error:
            raise InvalidInput(f"cannot write '{folder / name}': {error.strerror}.") from None
        console.print(f"wrote {folder / name}", soft_wrap=True, markup=False)


def scores_document(name: str, text: TextTokens, scores: TextScores, *, seconds: float) -> dict[str, Any]:
    """JSON-able form; a number that is infinite is null."""
    return {
        "schema": "marginlab.ngrams/1",
        "marginlab": marginlab.__version__,
        "file": name.encode(errors="replace").decode(),
        "unit": text.unit,
        "order": scores.order,
        "vocab_size": scores.vocab_size,
        "dropped_byte_order_mark": text.dropped_mark,
        "tuned_symbols": scores.tuned_symbols,
        "judged_symbols": scores.judged_symbols,
        "floor": FLOOR,
        "seconds": round(seconds, 3),
        "estimators": [
            {
                "name": s.name,
                "bits": s.bits,
                "standard_error": s.standard_error,
                "raw_bits": s.raw_bits,
                "zero_share": s.zero_share,
                "unknown_share": s.unknown_share,
                "parameters": dict(s.parameters),
            }
            for s in scores.estimators
        ],
        "mixture_weights": {"orders": scores.order_weights.tolist(), "bos": scores.bos_weight},
    }


def _print(console: Console, document: dict[str, Any]) -> None:
    unit = document["unit"]
    table = Table(
        title=f"{document['file']}: bits per {unit}, order {document['order']}, {document['vocab_size']} symbols"
    )
    for heading in ("estimator", "bits", "± se", "without floor", "zeros", "parameters"):
        table.add_column(heading, overflow="fold", justify="left" if heading == "estimator" else "right")
    for s in document["estimators"]:
        raw = "infinite" if s["raw_bits"] is None else f"{s['raw_bits']:.4f}"
        table.add_row(
            s["name"],
            f"{s['bits']:.4f}",
            f"{s['standard_error']:.4f}",
            raw,
            f"{s['zero_share']:.2%}" if s["zero_share"] else "",
            _short(s["parameters"]),
        )
    console.print(table)
    weights = document["mixture_weights"]
    parts = [f"order {r} {w:.3f}" for r, w in enumerate(weights["orders"])]
    if document["dropped_byte_order_mark"]:
        console.print("a byte order mark at the start was left out")
    console.print(
        f"tuned on the first {document['tuned_symbols']} symbols, judged on the other {document['judged_symbols']}; "
        f"'bits' has {document['floor']:g} of the uniform law mixed in, 'without floor' has not",
        soft_wrap=True,
    )
    if unit != "byte":
        console.print(f"the alphabet, every {unit} of the text, is taken as known", soft_wrap=True)
    console.print(
        f"soft matching with BOS, mean weights: {', '.join(parts)}, BOS {weights['bos']:.3f}", soft_wrap=True
    )


def _short(parameters: dict[str, Any]) -> str:
    """Parameters in a table cell; bucketed weights stand in the JSON."""
    if "edges" in parameters:
        return f"{sum(len(row) for row in parameters['weights'])} weights"
    pairs = []
    for name, value in parameters.items():
        numbers = value if isinstance(value, list) else [value]
        pairs.append(f"{name} {' '.join(f'{v:.3g}' for v in numbers)}")
    return "; ".join(pairs)
