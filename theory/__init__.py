"""Closed forms of the papers: NumPy and SciPy only, no files, no printing.

Subpackages are imported by name, one per paper: ``from marginlab.theory import match_copy``.
"""
