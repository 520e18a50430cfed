"""Gradient descent on the objects of the papers: engines, trajectories, stored results."""
