"""Learners that take one stochastic gradient step per row."""
