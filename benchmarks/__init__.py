"""What inference costs: timings, not tests."""
