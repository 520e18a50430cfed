"""Claims of Gaussian match-and-copy (Gonon, Cordonnier, Boumal, arXiv 2602.07562v1)."""

from marginlab.proofs_check.claims.match_copy.asymptotics import direction as direction
from marginlab.proofs_check.claims.match_copy.asymptotics import direction_halfspace as direction_halfspace
from marginlab.proofs_check.claims.match_copy.asymptotics import norm_growth as norm_growth
from marginlab.proofs_check.claims.match_copy.asymptotics import (
    norm_growth_halfspace as norm_growth_halfspace,
)
from marginlab.proofs_check.claims.match_copy.numerics import direction_normalised as direction_normalised
from marginlab.proofs_check.claims.match_copy.numerics import frame_scaled_gradient as frame_scaled_gradient
from marginlab.proofs_check.claims.match_copy.rivals import direction_rivals as direction_rivals
from marginlab.proofs_check.claims.match_copy.separators import separator as separator

CLAIMS = (
    separator,
    frame_scaled_gradient,
    direction,
    norm_growth,
    direction_halfspace,
    norm_growth_halfspace,
    direction_normalised,
    direction_rivals,
)
