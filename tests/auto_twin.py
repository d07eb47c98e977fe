"""The steered engine of `auto` written again from its definition: every chunk is kept, and nothing is accumulated.

Only what the recipe says is shared with the library: the problem's gradient and Hessian, row by row, the signs of the
dither, and the numbers of the recipe. Corrections are looked up by move (every chunk from before a move is corrected by
what the move leaves out), batches are cut from the list of chunks.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np


@dataclass
class Chunk:
    """One chunk: sums at its own linearisation point, what was deployed, and the dither in it."""

    H: np.ndarray
    g: np.ndarray
    point: np.ndarray
    deployed: np.ndarray
    dither: np.ndarray
    renewal: float
    noise: float
    bends: np.ndarray


def pairs_of(x):
    """Sums of neighbours, from the last batch on; three make the first one where their number is odd."""
    starts = list(range(len(x) % 2, len(x), 2))
    pairs = [x[a : a + 2].sum(axis=0) for a in starts]
    if len(x) % 2:
        pairs[0] = pairs[0] + x[0]
    return np.array(pairs)


def longer_show_more(x):
    """Whether twos or fours of neighbours have more variance, by two standard deviations, in the median coordinate."""
    twos = pairs_of(x)
    for longer in (twos, pairs_of(twos)):
        K, L = len(x), len(longer)
        ratios = [
            (longer[:, j] @ longer[:, j] * L / (L - 1)) / (x[:, j] @ x[:, j] * K / (K - 1)) for j in range(x.shape[1])
        ]
        if np.median(ratios) > 1 + 2 * np.sqrt(2 / L - 2 / K):
            return True
    return False


class Twin:
    """With the problem's Hessian; `draw(theta, count)` gives the next rows while theta is deployed."""

    def __init__(self, problem, draw, n, signs, m=64):
        self.problem, self.draw, self.m, self.d, self.signs = problem, draw, m, problem.dim, signs
        self.first = 512
        d, first = self.d, self.first
        self.theta, self.point = np.array(problem.theta_0), np.array(problem.theta_0)
        self.J, self.root, self.k, self.count = np.zeros((d, d)), None, 0, 0
        self.prior, self.settled = np.zeros(d), False
        self.spacing = 1e-4 * np.maximum(1.0, np.abs(self.theta))
        self.chunks, self.moves, hessians = [], [], []
        # Moving: theta is the point, and the mean Hessian forgets by a quarter per chunk; until it changes by less than
        # a fifth within four chunks, in the median column.
        weights, heights = [], [1.0]
        while self.k < 2 * first or self.count % 4 or not 1 / 1.2 < heights[-1] / heights[-2] < 1.2:
            chunk = self.next_chunk(whole=self.k < 2 * first, turn=self.count)
            hessians.append(chunk.H)
            weights = [0.75 * weight for weight in weights] + [1.0]
            self.rows_of_mean = m * sum(weights)
            self.mean = sum(w * H for w, H in zip(weights, hessians, strict=True)) / self.rows_of_mean
            self.precondition(self.mean, self.rows_of_mean)
            self.point = self.theta.copy()
            self.bends = m * self.mean @ (self.point - np.array(problem.theta_0))
            self.chunks.append(chunk)
            if self.count % 4 == 0:
                heights.append(np.median(np.diag(self.mean) / self.prior))
        start, started_rows = self.mean * self.rows_of_mean, self.rows_of_mean
        self.origin = self.point
        self.respace(self.chunks)
        self.bends = 0.0
        # Averaging: the mean of the deployed thetas is the first linearisation point.
        self.chunks, refresh, turn, ends = [], self.k + 4 * m, self.count, self.k + 2 * first
        while self.k < ends:
            self.chunks.append(self.next_chunk(whole=False, turn=turn))
            turn += 1
            if self.k >= refresh and self.k < ends:
                refresh = self.k + max(4 * m, self.k // 5)
                rows = started_rows + m * len(self.chunks)
                self.precondition((start + sum(c.H for c in self.chunks)) / rows, rows)
        start, started_rows = start + sum(c.H for c in self.chunks), started_rows + m * len(self.chunks)
        self.point = self.origin = np.mean([c.deployed for c in self.chunks], axis=0)
        # Estimating.
        self.chunks, weighing, previous, turn, self.marks = [], None, self.point, 0, [0]
        prior_rows, refresh, feedback = 0.5 * self.k, self.k + self.k // 4, self.k + self.k // 4
        while self.k + m <= n:
            every = turn < max(8, first // m)
            chunk = self.next_chunk(whole=every, turn=turn if every else turn - max(8, first // m), weigh=previous)
            turn += 1
            self.chunks.append(chunk)
            if weighing is not None:
                weighing.append(self.left)
                if len(weighing) == 8:
                    self.moves.append((len(self.chunks) - 8, np.sum(weighing, axis=0) / (8 * m)))
                    weighing = None
            if weighing is None and self.k >= refresh:
                rows = started_rows + m * len(self.chunks)
                mean = (start + sum(c.H for c in self.chunks)) / rows
                refresh = max(int(1.2 * self.k), self.k + 8 * m)
                self.marks.append(len(self.chunks))
                if self.k >= feedback:
                    seen = self.response(sum(c.H for c in self.chunks) / (m * len(self.chunks)))
                    self.J, self.settled = seen["steering"], seen["settled"]
                    self.precondition(mean, rows)
                    self.root = self.dither_root() if seen["doubtful"] else None
                    feedback = int((1.2 if seen["suspected"] and not self.settled else 1.5) * self.k)
                self.precondition(mean, rows)
                previous = self.point
                A, B = self.sums(self.J, range(len(self.chunks)))
                prior_A = prior_rows * (mean + self.J)
                A = A + prior_A + np.diag(self.prior)
                B = B + prior_A @ self.origin + self.prior * self.origin
                self.point = np.linalg.solve(A, B)
                self.theta = self.balancing() if self.settled else self.theta
                self.bends = m * mean @ (self.point - self.origin)
                weighing = []
        if weighing:
            self.moves.append((len(self.chunks) - len(weighing), np.sum(weighing, axis=0) / (len(weighing) * m)))
        self.finish()

    bends = 0.0
    P = 0.0

    def next_chunk(self, whole, turn, weigh=None):
        """Deploy, draw, and step; the gain of the steps begins at 0.05 and doubles."""
        m, d = self.m, self.d
        plain = min((self.k + m) ** -0.505, 0.35 / (m + d + 1.0))
        gain = min(0.05 * 2.0**self.count, 0.35 * m / (m + d + 1.0))
        step = min(plain, gain / m, 1.0 / (self.k + m) if self.settled else 1.0)
        dither = np.zeros(d) if self.root is None else np.sqrt(plain / 2) * self.root @ self.signs(self.count)
        deployed = self.theta + dither
        rows = self.draw(deployed, m)
        H, g = self.chunk_hessian(whole, turn, rows), self.gradient(self.point, rows)
        self.left = None if weigh is None else self.left_out(weigh, rows)
        noise = step if self.root is None else step + plain
        chunk = Chunk(H, g, self.point, deployed, dither, m * step, m * noise, self.bends)
        here = self.gradient(self.theta, rows)
        p = self.P @ here if np.ndim(self.P) else np.zeros(d)
        bend = p @ H @ p + m * p @ self.J @ p
        if p.any():
            self.theta = self.theta - max(0.0, min(step, here @ p / bend)) * p
        self.k, self.count = self.k + m, self.count + 1
        return chunk

    def balancing(self):
        """Past the point by twice what the mean of the deployed thetas lacks to it, or as far as noise carries."""
        away = 2 * (self.point - np.mean([c.deployed for c in self.chunks], axis=0))
        root = self.dither_root()
        far = away @ np.linalg.solve(root @ root.T, away) / self.d
        plain = min((self.k + self.m) ** -0.505, 0.35 / (self.m + self.d + 1.0))
        return self.point + away * min(1.0, np.sqrt(plain / 2 / far))

    def precondition(self, mean, rows):
        new = (self.prior == 0.0) & (np.diag(mean) != 0.0)
        self.prior[new] = np.abs(np.diag(mean))[new] * np.sqrt(self.m)
        self.P = np.linalg.inv(mean + np.diag(self.prior) / rows + self.J)

    def noise(self, chunks):
        """The covariance of a row's gradient noise, less what the deployed theta explains."""
        y, x, *_ = self.regression(chunks)
        design = np.column_stack([np.ones(len(x)), x])
        left = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
        return left.T @ left / len(x) * self.m

    def dither_root(self):
        values, vectors = np.linalg.eigh(self.noise(self.chunks))
        return self.P @ (vectors * np.sqrt(np.maximum(values, 0.0)))

    def respace(self, chunks):
        pass

    def regression(self, chunks):
        """Mean gradients put back to the origin, offsets, dithers and renewals of the chunks."""
        y = np.array([(c.g - c.bends) / self.m for c in chunks])
        x = np.array([c.deployed - self.origin for c in chunks])
        return y, x, np.array([c.dither for c in chunks]), sum(c.renewal for c in chunks)

    def response(self, mean):
        d = self.d
        y, x, z, R = self.regression(self.chunks)
        count, none = len(y), np.zeros_like(mean)
        explained = self.slope(x, y)[1]
        noise = np.cov(y.T, bias=True).reshape(d, d)
        F = np.trace(np.linalg.solve(noise, explained.T @ explained)) * (count - d - 1) / count
        found = {"J": none, "steering": none, "settled": False, "doubtful": False, "renewals": np.inf}
        found["suspected"] = F / d**2 >= 1 + 3 * np.sqrt(2) / d
        if not found["suspected"]:
            return found
        confirmed, found["doubtful"] = False, True
        if z.any():
            T, E = self.instrument(y, x, z)
            confirmed = T > 2.33
            found["doubtful"] = not (T > 3.3 or (T < 2.33 and E - T > 5))
            if T <= 2.33 and E - T > 5:
                return found
        late = self.late_share(y, x)
        x = x + late * self.lags(x)
        raw, explained = self.slope(x, y)
        J = (mean + raw) / (1 + min((d + 3) / R, 0.5)) - mean
        used = (1 - d**2 / F) * J
        gains = [np.sqrt((np.linalg.solve(mean + either, mean) ** 2).sum() / d) for either in (J, used)]
        if max(gains) > 15:
            return found
        settled = confirmed and max(96, 32 * max(gains)) <= R
        left = y - y.mean(axis=0) - explained
        row_noise = left.T @ left / count * self.m
        V = self.m * count * np.cov(x.T, bias=True).reshape(d, d)
        sigma = np.linalg.solve(mean + J, np.linalg.solve(mean + J, row_noise).T)
        typical = 2 * d / np.trace(np.linalg.solve(V, sigma))
        return found | {"J": J, "steering": used, "settled": settled, "renewals": min(R, typical), "spread": V}

    def lags(self, x):
        """The moving average of x over past chunks, less x itself."""
        trace, lags = x[0], []
        for value, chunk in zip(x, self.chunks, strict=True):
            kept = np.exp(-2.0 * chunk.renewal)
            trace = kept * trace + (1.0 - kept) * value
            lags.append(trace - value)
        return np.array(lags)

    def late_share(self, y, x):
        """The share of the response that is late, by generalised least squares for one number, and shrunk."""
        d, lags = self.d, self.lags(x)
        if len(y) < 4 * d + 8:
            return 0.0
        both, explained = self.slope(np.column_stack([x, lags]), y)
        e = y - y.mean(axis=0) - explained
        weight = np.linalg.inv(e.T @ e / len(e))
        alone = lags - lags.mean(axis=0) - self.slope(x, lags)[1]
        share = 0.0
        for _ in range(3):
            J = self.slope(x + share * lags, y)[0]
            late, seen = alone @ J.T, alone @ both[:, d:].T
            information = np.sum((late @ weight) * late)
            raw = np.sum((late @ weight) * seen) / information
            share = max(0.0, raw * (1 - 1 / (raw**2 * information))) if raw > 0 else 0.0
        return share

    def slope(self, x, y):
        design = np.column_stack([np.ones(len(x)), x])
        slope = np.linalg.lstsq(design, y, rcond=None)[0][1:].T
        return slope, (x - x.mean(axis=0)) @ slope.T

    def instrument(self, y, x, z):
        base = x - z
        slope, explained = self.slope(base, y)
        e = y - y.mean(axis=0) - explained
        weight = np.linalg.inv(e.T @ e / len(e) * self.m)
        V, cross = self.m * z.T @ z, self.m * e.T @ z
        N = np.sqrt(np.trace(weight @ slope @ V @ slope.T))
        spread = self.m * len(base) * np.cov(base.T, bias=True).reshape(self.d, self.d)
        expected = N - self.d * np.trace(np.linalg.solve(spread, V)) / N
        return np.trace(weight @ cross @ slope.T) / N, max(expected, 0.0)

    def chunk_hessian(self, whole, turn, rows):
        return self.hessian(self.point, rows)

    def left_out(self, previous, rows):
        """What is not linear in the last move."""
        bend = self.hessian(self.point, rows) @ (previous - self.point)
        return self.gradient(previous, rows) - self.gradient(self.point, rows) - bend

    def gradient(self, theta, rows):
        total, grad = np.zeros(self.d), np.empty(self.d)
        for row in rows:
            self.problem.gradient(theta, row, self.problem.params, grad)
            total += grad
        return total

    def hessian(self, theta, rows):
        total, u = np.zeros((self.d, self.d)), np.empty(self.d)
        for row in rows:
            w, c = self.problem.hessian(theta, row, self.problem.params, u)
            total += w * np.outer(u, u) + c * np.eye(self.d)
        return total

    def sums(self, J, indices):
        A, B = np.zeros_like(J), np.zeros(len(J))
        for at in indices:
            c = self.chunks[at]
            left_out = sum((D for before, D in self.moves if at < before), np.zeros(len(J)))
            A += c.H + self.m * J
            B += c.H @ c.point - c.g + self.m * J @ c.deployed - self.m * left_out
        return A, B

    def finish(self):
        count, length = len(self.chunks), 4
        while count // length >= 128:
            length *= 2
        edges = [*range(0, count, length), count]
        if edges[-1] - edges[-2] < length / 2 and len(edges) > 2:
            del edges[-2]
        seen = self.response(np.mean([c.H for c in self.chunks], axis=0) / self.m)
        self.J, self.renewals = seen["J"], seen["renewals"]
        batches = [self.sums(self.J, range(*edge)) for edge in pairwise(edges)]
        self.inflation = 1.0
        if self.J.any():
            weights = self.weights(edges)
            batches = [(w * A_j, w * B_j) for w, (A_j, B_j) in zip(weights, batches, strict=True)]
        A, B = (np.sum(part, axis=0) for part in zip(*batches, strict=True))
        self.params = np.linalg.solve(A, B)
        self.influences = np.array([np.linalg.solve(A, B_j - A_j @ self.params) for A_j, B_j in batches])
        while len(self.influences) >= 32 and longer_show_more(self.influences):
            edges = [0, *edges[2 + len(self.influences) % 2 :: 2]]
            self.influences = pairs_of(self.influences)
        if self.J.any():
            x = np.array([c.deployed for c in self.chunks])
            T = [self.m * (x[a:b] - x.mean(axis=0)).sum(axis=0) for a, b in pairwise(edges)]
            taken = sum(T_j @ np.linalg.solve(seen["spread"], T_j) for T_j in T) / (self.m * count)
            away = x.mean(axis=0) - self.params
            leverage = self.m * count * away @ np.linalg.solve(seen["spread"], away)
            added = 2 * (self.d + 2) / self.renewals if seen["settled"] else 0.0
            self.inflation = (1 + leverage) / (1 + added - taken)

    def weights(self, edges):
        """Batches count by how noisy theta was: linear in that, and uncorrelated with it as far as 1.05 allows."""
        total = np.concatenate([[0.0], np.cumsum([c.noise for c in self.chunks])])
        marks = [*self.marks, len(self.chunks)]
        sums, rows = np.interp(edges, marks, total[marks]), self.m * np.diff(edges)
        v = np.diff(sums) / rows
        mean = np.average(v, weights=rows)
        variance = np.average((v - mean) ** 2, weights=rows)
        share = min(1.0, np.sqrt(0.05 * variance) / mean)
        return np.maximum(1.0 - share * mean * (v - mean) / variance, 0.0)


class GradientTwin(Twin):
    """Without it."""

    def chunk_hessian(self, whole, turn, rows):
        every = 1 if whole else 4
        sign = 1 - 2 * (turn // every % 2)
        if turn % every == 0:
            here = self.gradient(self.point, rows)
            steps = np.diag(sign * self.spacing)
            columns = [(self.gradient(self.point + step, rows) - here) / step.sum() for step in steps]
            self.last = np.column_stack(columns)
        return self.last

    def respace(self, chunks):
        if len(chunks) >= 2 * self.d + 8:
            origin, self.origin = self.origin, np.array(self.problem.theta_0)
            values, vectors = np.linalg.eigh(self.noise(chunks))
            self.origin = origin
            moves = self.P @ (vectors * np.sqrt(np.maximum(values, 0.0)))
            self.spacing = 0.05 * np.sqrt(np.square(moves).sum(axis=1))

    def left_out(self, previous, rows):
        here, whole = self.gradient(self.point, rows), self.gradient(previous, rows)
        tenth = self.gradient(self.point + 0.1 * (previous - self.point), rows)
        return (whole - here - 10 * (tenth - here)) / 0.9
