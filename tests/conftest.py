"""Settings that every test shares."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy is imported: the test workers share the cores

from hypothesis import settings

settings.register_profile("halfwidth", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("halfwidth")
