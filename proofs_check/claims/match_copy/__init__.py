"""Claims of Gaussian match-and-copy (Gonon, Cordonnier, Boumal, arXiv 2602.07562v1)."""

from marginlab.proofs_check.claims.match_copy import (
    alignment_law,
    asymptotics,
    certified_start,
    counterexample,
    cross_entropy,
    data_chance,
    data_geometry,
    domination_gaps,
    errata,
    factors,
    flow_laws,
    halfspace_probability,
    identifiable,
    identities,
    large_margins,
    measured_loss,
    measured_stability,
    numerics,
    proof_steps,
    residual_bounds,
    rivals,
    separators,
    small_steps,
    spurious,
    step_rules,
    two_losses,
)

#: In the order of reports; each module lists its own.
CLAIMS = tuple(
    claim
    for module in (
        separators,
        numerics,
        asymptotics,
        rivals,
        measured_loss,
        measured_stability,
        flow_laws,
        alignment_law,
        cross_entropy,
        proof_steps,
        domination_gaps,
        identities,
        errata,
        data_geometry,
        halfspace_probability,
        residual_bounds,
        two_losses,
        data_chance,
        large_margins,
        counterexample,
        certified_start,
        identifiable,
        spurious,
        small_steps,
        step_rules,
        factors,
    )
    for claim in module.CLAIMS
)
