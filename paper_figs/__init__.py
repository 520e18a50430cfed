"""Figures: drawn from data that a report or a computation holds, never recomputed while drawing."""
