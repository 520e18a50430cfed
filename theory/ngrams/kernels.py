"""Compilation of this family's kernels ahead of their first use."""

from __future__ import annotations


def warm_up() -> None:
    """Call every compiled kernel once on a few tokens, so that numba's cache on disk holds it."""
    from marginlab.theory.ngrams.batches import batch_counts
    from marginlab.theory.ngrams.counting import (
        Masks,
        checked_tokens,
        row_blocks,
        symbol_blocks,
    )
    from marginlab.theory.ngrams.gibbs import gibbs_mean
    from marginlab.theory.ngrams.hierarchical import posterior_mean_exact
    from marginlab.theory.ngrams.sampling import sample
    from marginlab.theory.ngrams.soft_matching import log_loss, soft_match
    from marginlab.theory.ngrams.task import NGramTask

    task = NGramTask(vocab_size=2, order=2, prior="hierarchical", base_order=1, concentrations=(4.0,))
    tokens = sample(task, 2, 8, 0).tokens
    for method in ("dense", "hashed"):
        soft_match(tokens[0], 2, [1.0, -1.0], method=method)
        log_loss(tokens[0], 2, [1.0, -1.0], method=method)
        for _ in row_blocks(
            checked_tokens(tokens[0], 2),
            2,
            Masks.suffixes(2),
            boundary="padded",
            customers=True,
            method=method,
        ):
            pass
    for _ in symbol_blocks(checked_tokens(tokens[0], 2), 2, Masks.subsets(2), boundary="padded", below=True):
        pass
    for contexts in ("subsets", "suffixes"):
        batch_counts(tokens, 2, 2, contexts=contexts)
    posterior_mean_exact(tokens, 2, 2, 1.0, 4.0)
    gibbs_mean(task, tokens, sweeps=20, burn_in=0, seed=0)
