"""Closed forms of Gaussian match-and-copy (Gonon, Cordonnier, Boumal, arXiv 2602.07562v1)."""

from marginlab.theory.match_copy.sampling import MatchCopyData as MatchCopyData
from marginlab.theory.match_copy.sampling import sample as sample
from marginlab.theory.match_copy.task import MatchCopyTask as MatchCopyTask
