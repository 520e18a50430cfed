"""Closed forms of Gaussian match-and-copy (Gonon, Cordonnier, Boumal, arXiv 2602.07562v1)."""

from marginlab.theory.match_copy.attention import AttentionProblem as AttentionProblem
from marginlab.theory.match_copy.attention import attention_weights as attention_weights
from marginlab.theory.match_copy.attention import log_attention as log_attention
from marginlab.theory.match_copy.attention import margins as margins
from marginlab.theory.match_copy.attention import min_margin as min_margin
from marginlab.theory.match_copy.correction import NoFixedPoint as NoFixedPoint
from marginlab.theory.match_copy.correction import margin_correction as margin_correction
from marginlab.theory.match_copy.doubt import bayes_excess_bounds as bayes_excess_bounds
from marginlab.theory.match_copy.doubt import pair_doubt as pair_doubt
from marginlab.theory.match_copy.geometry import HullDistance as HullDistance
from marginlab.theory.match_copy.geometry import error_radii as error_radii
from marginlab.theory.match_copy.geometry import feature_radii as feature_radii
from marginlab.theory.match_copy.geometry import hull_distance as hull_distance
from marginlab.theory.match_copy.geometry import hull_distances as hull_distances
from marginlab.theory.match_copy.geometry import smallest_alignments as smallest_alignments
from marginlab.theory.match_copy.gradient import cross_entropy_coefficients as cross_entropy_coefficients
from marginlab.theory.match_copy.gradient import error_alignments as error_alignments
from marginlab.theory.match_copy.gradient import mse_coefficients as mse_coefficients
from marginlab.theory.match_copy.head_scores import induction_score as induction_score
from marginlab.theory.match_copy.head_scores import previous_token_score as previous_token_score
from marginlab.theory.match_copy.head_scores import repeat_score as repeat_score
from marginlab.theory.match_copy.head_scores import uniform_scores as uniform_scores
from marginlab.theory.match_copy.laws import Offset as Offset
from marginlab.theory.match_copy.laws import limit_alignments as limit_alignments
from marginlab.theory.match_copy.laws import limit_margins as limit_margins
from marginlab.theory.match_copy.laws import loss_constant as loss_constant
from marginlab.theory.match_copy.laws import misalignment as misalignment
from marginlab.theory.match_copy.laws import norm_slope as norm_slope
from marginlab.theory.match_copy.laws import slack_rate as slack_rate
from marginlab.theory.match_copy.laws import squared_gradient_constant as squared_gradient_constant
from marginlab.theory.match_copy.laws import support_offset as support_offset
from marginlab.theory.match_copy.laws import support_rates as support_rates
from marginlab.theory.match_copy.losses import cross_entropy as cross_entropy
from marginlab.theory.match_copy.losses import error_directions as error_directions
from marginlab.theory.match_copy.losses import log_loss as log_loss
from marginlab.theory.match_copy.losses import residuals as residuals
from marginlab.theory.match_copy.losses import squared_error as squared_error
from marginlab.theory.match_copy.predictors import attention_predict as attention_predict
from marginlab.theory.match_copy.predictors import bayes_predict as bayes_predict
from marginlab.theory.match_copy.predictors import best_attention_scale as best_attention_scale
from marginlab.theory.match_copy.predictors import hard_match_predict as hard_match_predict
from marginlab.theory.match_copy.predictors import posterior_variances as posterior_variances
from marginlab.theory.match_copy.predictors import squared_errors as squared_errors
from marginlab.theory.match_copy.predictors import uniform_copy_error as uniform_copy_error
from marginlab.theory.match_copy.predictors import uniform_copy_predict as uniform_copy_predict
from marginlab.theory.match_copy.predictors import zero_error as zero_error
from marginlab.theory.match_copy.predictors import zero_predict as zero_predict
from marginlab.theory.match_copy.probability import halfspace_violation_bound as halfspace_violation_bound
from marginlab.theory.match_copy.probability import (
    halfspace_violation_probability as halfspace_violation_probability,
)
from marginlab.theory.match_copy.probability import pair_violation_bound as pair_violation_bound
from marginlab.theory.match_copy.probability import pair_violation_probability as pair_violation_probability
from marginlab.theory.match_copy.sampling import MatchCopyData as MatchCopyData
from marginlab.theory.match_copy.sampling import sample as sample
from marginlab.theory.match_copy.task import MatchCopyTask as MatchCopyTask
