"""Renewable Newton: chunk by chunk, without a step size."""
