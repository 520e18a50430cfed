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
from marginlab.theory.ngrams.smoothing import absolute_discounting as absolute_discounting
from marginlab.theory.ngrams.smoothing import add_alpha as add_alpha
from marginlab.theory.ngrams.smoothing import jelinek_mercer as jelinek_mercer
from marginlab.theory.ngrams.smoothing import katz as katz
from marginlab.theory.ngrams.smoothing import kneser_ney as kneser_ney
from marginlab.theory.ngrams.smoothing import mackay_peto as mackay_peto
from marginlab.theory.ngrams.smoothing import ml as ml
from marginlab.theory.ngrams.smoothing import pitman_yor as pitman_yor
from marginlab.theory.ngrams.soft_matching import log_loss as log_loss
from marginlab.theory.ngrams.soft_matching import soft_match as soft_match
from marginlab.theory.ngrams.soft_matching import soft_match_definition as soft_match_definition
from marginlab.theory.ngrams.soft_matching import soft_match_law as soft_match_law
from marginlab.theory.ngrams.task import NGramTask as NGramTask
from marginlab.theory.ngrams.tuning import SmoothingFit as SmoothingFit
from marginlab.theory.ngrams.tuning import SoftMatchFit as SoftMatchFit
from marginlab.theory.ngrams.tuning import fit_smoothing as fit_smoothing
from marginlab.theory.ngrams.tuning import fit_soft_match as fit_soft_match
