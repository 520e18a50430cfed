"""Closed forms of n-gram induction heads (D'Angelo, Yuksel, Narashiman, Flammarion, arXiv 2607.02800)."""

from marginlab.theory.ngrams.construction import InductionNetwork as InductionNetwork
from marginlab.theory.ngrams.construction import induction_network as induction_network
from marginlab.theory.ngrams.counting import batch_counts as batch_counts
from marginlab.theory.ngrams.counting import overlap_counts as overlap_counts
from marginlab.theory.ngrams.finite_scale import boundary_mass as boundary_mass
from marginlab.theory.ngrams.finite_scale import finite_scale_bound as finite_scale_bound
from marginlab.theory.ngrams.finite_scale import no_bos_boundary_law as no_bos_boundary_law
from marginlab.theory.ngrams.sampling import NGramData as NGramData
from marginlab.theory.ngrams.sampling import sample as sample
from marginlab.theory.ngrams.soft_matching import log_loss as log_loss
from marginlab.theory.ngrams.soft_matching import soft_match as soft_match
from marginlab.theory.ngrams.soft_matching import soft_match_definition as soft_match_definition
from marginlab.theory.ngrams.soft_matching import soft_match_law as soft_match_law
from marginlab.theory.ngrams.task import NGramTask as NGramTask
