"""Saved states: the schema that every one is validated against, and the checkpoint file."""
