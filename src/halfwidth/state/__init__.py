"""Saved states: the checkpoint file."""
