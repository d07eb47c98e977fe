"""Learners that advance several copies of a trajectory: bootstraps, trees, parallel runs."""
