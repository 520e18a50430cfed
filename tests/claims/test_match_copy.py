"""The claims of the package: each import below becomes one test item, and one for each of its controls."""

from marginlab.proofs_check.claims.match_copy import direction as direction
from marginlab.proofs_check.claims.match_copy import direction_halfspace as direction_halfspace
from marginlab.proofs_check.claims.match_copy import direction_normalised as direction_normalised
from marginlab.proofs_check.claims.match_copy import direction_rivals as direction_rivals
from marginlab.proofs_check.claims.match_copy import frame_scaled_gradient as frame_scaled_gradient
from marginlab.proofs_check.claims.match_copy import norm_growth as norm_growth
from marginlab.proofs_check.claims.match_copy import norm_growth_halfspace as norm_growth_halfspace
from marginlab.proofs_check.claims.match_copy import separator as separator
