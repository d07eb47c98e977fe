"""`auto` written again from its definition: every chunk is kept, and the answer is put together at the end.

Only what the recipe says is shared with the library: the problem's gradient and Hessian, row by row, and the numbers of
the recipe. Corrections are looked up by move (every chunk from before a move is corrected by what the move leaves out),
batches are cut from the list of chunks, and nothing is accumulated on the way.
"""

from itertools import pairwise

import numpy as np


class Twin:
    """With the problem's Hessian; `draw(theta, count)` gives the next rows while theta is deployed."""

    def __init__(self, problem, draw, n, m=64):
        self.problem, self.m = problem, m
        d = problem.dim
        first = -(-max(512, 10 * d) // m) * m
        rows = draw(problem.theta_0, first)
        theta, A = self.newton(rows)
        P = np.linalg.inv((A + self.ridge(A)) / first)
        moves = [P @ self.gradient(theta, row[None]) for row in rows]
        self.spacing = 0.05 * np.sqrt(np.mean(np.square(moves), axis=0))
        point, J, k = theta.copy(), np.zeros((d, d)), first
        hessians, averaged = [], []
        self.chunks, self.moves = [], []  # (H, g, point, theta) of each; (chunks before the move, D a row)
        self.noted, moved = [], np.zeros(d)  # (g a row at the start, theta - start, m eta) of each; H (point - start)
        weighing, estimating, prior, previous, learned = None, False, 0.0, point, False
        next_refresh, next_response = first + 4 * m, n
        while k + m <= n:
            rows = draw(theta, m)
            gd, g = self.gradient(theta, rows), self.gradient(point, rows)
            H = self.chunk_hessian(len(hessians), len(self.chunks) if estimating else None, point, rows)
            hessians.append(H)
            averaged.append(theta)
            planned = min((k + m) ** -0.505, 0.35 / (m + d + 1.0), (k + m) ** (-2 / 3) if learned else 1.0)
            if estimating:
                self.chunks.append((H, g, point, theta))
                self.noted.append((g / m - moved, theta - self.start, m * planned))
                if weighing is not None:
                    weighing.append(self.left_out(previous, point, rows))
            k += m
            p = P @ gd
            limit = gd @ p / (p @ self.along(theta, planned * p, rows) / planned + m * p @ J @ p)
            theta = theta - max(0.0, min(planned, limit)) * p
            if weighing is not None and len(weighing) == 8:
                self.moves.append((len(self.chunks) - 8, np.sum(weighing, axis=0) / (8 * m)))
                weighing = None
            if weighing is None and k >= next_refresh:
                begins = self.start_counts(k - m < 2 * first, len(self.chunks))
                mean = (np.sum(hessians, axis=0) + begins * A) / (m * len(hessians) + begins * first)
                if not estimating:
                    next_refresh = k + 4 * m
                    P = np.linalg.inv(mean)
                else:
                    next_refresh = max(int(1.2 * k), k + 8 * m)
                    if k >= next_response:
                        next_response = int(1.5 * k)
                        full, J, renewals = self.response(mean)
                        gain = np.sqrt((np.linalg.solve(mean + full, mean) ** 2).sum() / d)
                        learned = 32 * gain <= renewals < np.inf
                    P = np.linalg.inv(mean + J)
                    A_all, B_all = self.sums(J, range(len(self.chunks)))
                    previous = point
                    prior_A = prior * (mean + J)
                    point = np.linalg.solve(A_all + prior_A, B_all + prior_A @ self.start)
                    moved = mean @ (point - self.start)
                    weighing = []
            if k == 2 * first:
                averaged = []
            if k == 4 * first:
                point = self.start = np.mean(averaged, axis=0)
                estimating, prior, next_refresh, next_response = True, 0.5 * k, k + k // 4, k + k // 4
        if weighing:
            self.moves.append((len(self.chunks) - len(weighing), np.sum(weighing, axis=0) / (len(weighing) * m)))
        self.theta = theta
        self.finish()

    def chunk_hessian(self, index, estimated, point, rows):
        """What a chunk adds to A: `index` chunks came before it, `estimated` of them after the burn-in."""
        return self.hessian(point, rows)

    def left_out(self, previous, point, rows):
        """What is not linear in the last move."""
        bend = self.hessian(point, rows) @ (previous - point)
        return self.gradient(previous, rows) - self.gradient(point, rows) - bend

    def along(self, theta, step, rows):
        """The Hessian at theta times the step."""
        return self.hessian(theta, rows) @ step

    def start_counts(self, moving, estimated):
        """Whether the Hessian of the first rows is still part of the mean."""
        return moving

    def ridge(self, A):
        return np.diag(1e-3 * np.abs(np.diag(A)) + 1e-12 * np.abs(np.diag(A)).mean())

    def newton(self, rows):
        theta, decrements = np.array(self.problem.theta_0), []
        while len(decrements) < 12 and (not decrements or decrements[-1] > 1e-9 * max(decrements)):
            g, A = self.gradient(theta, rows), self.hessian(theta, rows)
            M = A + self.ridge(A)
            s = np.linalg.solve(M, g)
            t = 1.0
            while t > 1 / 32 and abs(s @ (self.gradient(theta - t * s, rows) - (1 - t) * g)) >= 0.5 * t * (s @ M @ s):
                t /= 2
            theta = theta - t * s
            decrements.append(s @ g)
        return theta, A

    def gradient(self, theta, rows):
        total, grad = np.zeros(self.problem.dim), np.empty(self.problem.dim)
        for row in rows:
            self.problem.gradient(theta, row, self.problem.params, grad)
            total += grad
        return total

    def hessian(self, theta, rows):
        total, u = np.zeros((self.problem.dim,) * 2), np.empty(self.problem.dim)
        for row in rows:
            w, c = self.problem.hessian(theta, row, self.problem.params, u)
            total += w * np.outer(u, u) + c * np.eye(self.problem.dim)
        return total

    def response(self, mean):
        """Ordinary least squares of the chunks' mean gradients on the offsets, with an intercept; less its lean.

        J, what the steps use of it, and the renewals.
        """
        d, count, none = self.problem.dim, len(self.chunks), np.zeros_like(mean)
        y, x, renewals = (np.array(column) for column in zip(*self.noted, strict=True))
        design = np.column_stack([np.ones(count), x])
        slope = np.linalg.lstsq(design, y, rcond=None)[0][1:].T
        explained = (x - x.mean(axis=0)) @ slope.T
        noise = np.cov(y.T, bias=True)  # of a chunk's mean
        F = np.trace(np.linalg.solve(noise, explained.T @ explained)) * (count - d - 1) / count
        if F / d**2 < 1 + 3 * np.sqrt(2) / d:
            return none, none, np.inf
        R = renewals.sum()
        J = (mean + slope) / (1 + min((d + 3) / R, 0.5)) - mean
        used = (1 - d**2 / F) * J
        gains = [np.sqrt((np.linalg.solve(mean + either, mean) ** 2).sum() / d) for either in (J, used)]
        return (J, used, R) if max(gains) <= 15 else (none, none, np.inf)

    def sums(self, J, indices):
        A, B = np.zeros_like(J), np.zeros(len(J))
        for c in indices:
            H, g, point, theta = self.chunks[c]
            left_out = sum((D for before, D in self.moves if c < before), np.zeros(len(J)))
            A += H + self.m * J
            B += H @ point - g + self.m * J @ theta - self.m * left_out
        return A, B

    def finish(self):
        count, length = len(self.chunks), 4
        while count // length >= 64:
            length *= 2
        edges = [*range(0, count, length), count]
        if edges[-1] - edges[-2] < length / 2 and len(edges) > 2:
            del edges[-2]
        self.J, _, self.renewals = self.response(np.mean([H for H, *_ in self.chunks], axis=0) / self.m)
        A, B = self.sums(self.J, range(count))
        self.params = np.linalg.solve(A, B)
        batches = [self.sums(self.J, range(*edge)) for edge in pairwise(edges)]
        self.influences = np.array([np.linalg.solve(A, B_j - A_j @ self.params) for A_j, B_j in batches])


class GradientTwin(Twin):
    """Without it."""

    def hessian(self, theta, rows):
        return self.differences(theta, rows, 1e-4 * np.maximum(1.0, np.abs(theta)))

    def differences(self, theta, rows, spacing):
        here = self.gradient(theta, rows)
        steps = np.diag(spacing)
        return np.column_stack([(self.gradient(theta + step, rows) - here) / step.sum() for step in steps])

    def chunk_hessian(self, index, estimated, point, rows):
        if estimated is not None and estimated < 8:
            every, turn = 1, estimated
        else:
            every, turn = 4, index if estimated is None else estimated - 8
        sign = 1 - 2 * (turn // every % 2)
        if turn % every == 0:
            self.last = self.differences(point, rows, sign * self.spacing)
        return self.last

    def left_out(self, previous, point, rows):
        here, whole = self.gradient(point, rows), self.gradient(previous, rows)
        tenth = self.gradient(point + 0.1 * (previous - point), rows)
        return (whole - here - 10 * (tenth - here)) / 0.9

    def along(self, theta, step, rows):
        return 2 * (self.gradient(theta, rows) - self.gradient(theta - step / 2, rows))

    def start_counts(self, moving, estimated):
        return estimated < 8
