"""A watcher that keeps all iterates, for tests of the learners that make them."""

import numpy as np

from halfwidth.watchers import OverlappingBatchMeans


class Recorder(OverlappingBatchMeans):
    """Keeps everything it sees."""

    def __init__(self, dim):
        super().__init__(dim)
        self.chunks = [np.empty((0, dim))]

    def take(self, thetas):
        self.chunks.append(thetas.copy())
        super().take(thetas)

    @property
    def thetas(self):
        return np.concatenate(self.chunks)
