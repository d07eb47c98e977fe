"""Slow twins of the learners that are methods: plain NumPy, from the definitions."""

import numpy as np


def weights_0_or_2(rng, copies):
    """Bits of random 32-bit numbers, lowest first."""
    words = [int(rng.random() * 2**32) for _ in range(-(-copies // 32))]
    return np.array([2.0 * (words[b // 32] >> b % 32 & 1) for b in range(copies)])


def bootstrap(rows, gradient, curvature, steps, rng, copies, block):
    """The averages of the trajectory and of its copies; theta^b moves by w^b times the trajectory's own step."""
    dim = len(rows[0]) - 1
    members, total = np.zeros((copies + 1, dim)), np.zeros((copies + 1, dim))
    for k, (row, eta) in enumerate(zip(rows, steps, strict=True)):
        if k % block == 0:
            weights = np.append(1.0, weights_0_or_2(rng, copies))
        eta = min(eta, 1.0 / curvature(members[0], row))
        for b in range(copies + 1):
            members[b] = members[b] - weights[b] * eta * gradient(members[b], row)
        total += members
    averages = total / len(rows)
    return averages[0], averages[1:]


def minibatch_bootstrap(rows, gradient, curvature, steps, rng, copies, batch):
    """The same with one step, by the mean gradient, and one weight for each batch; averages over batches."""
    members = np.zeros((copies + 1, len(rows[0]) - 1))
    path = []
    for t in range(len(rows) // batch):
        part = rows[t * batch : (t + 1) * batch]
        weights = np.append(1.0, weights_0_or_2(rng, copies))
        eta = min(steps[t], 1.0 / np.mean([curvature(members[0], row) for row in part]))
        pulls = [np.mean([gradient(member, row) for row in part], axis=0) for member in members]
        members = members - eta * weights[:, None] * pulls
        path.append(members)
    averages = np.mean(path, axis=0)
    return averages[0], averages[1:]


def deletions(H, r, W=None):
    """(A - H_b)^-1 r_b of every batch, and the degrees of freedom of every coefficient, from Gamma itself."""
    K, dim = r.shape
    W, inv = np.eye(K) if W is None else W, np.linalg.inv(H.sum(axis=0))
    u = np.array([np.linalg.solve(H.sum(axis=0) - h, v) for h, v in zip(H, r, strict=True)])
    middle = -np.einsum("bij,jk,ckl->bcil", H, inv, H)
    middle[np.arange(K), np.arange(K)] += H
    df = np.empty(dim)
    for j in range(dim):
        a = np.array([np.linalg.solve((np.eye(dim) - h @ inv).T, inv[:, j]) for h in H])
        form = W @ np.einsum("bi,bcij,cj->bc", a, middle, a)
        df[j] = np.trace(form) ** 2 / np.trace(form @ form)
    return u, df


def plug_in(points, rows, gradient, hessian):
    """A^-1 S A^-T with S the mean g g'."""
    grads = np.array([gradient(point, row) for point, row in zip(points, rows, strict=True)])
    A = np.mean([hessian(point, row) for point, row in zip(points, rows, strict=True)], axis=0)
    return np.linalg.inv(A) @ (grads.T @ grads / len(rows)) @ np.linalg.inv(A).T


def plug_in_long_run(points, rows, gradient, hessian, batch):
    """The covariance and degrees of freedom from whole batches of so many rows."""
    grads = np.array([gradient(point, row) for point, row in zip(points, rows, strict=True)])
    H = np.array([hessian(point, row) for point, row in zip(points, rows, strict=True)])
    edges = np.arange(0, len(rows), batch)
    u, df = deletions(np.add.reduceat(H, edges), np.add.reduceat(grads.mean(axis=0) - grads, edges))
    return len(rows) * u.T @ u, df


def one_step(points, rows, gradient, hessian, batch):
    """The centre A^-1 B, what each batch's residual B_j - A_j c adds to its error, and A_j; a short last one joins."""
    A = np.array([hessian(point, row) for point, row in zip(points, rows, strict=True)])
    grads = np.array([gradient(point, row) for point, row in zip(points, rows, strict=True)])
    B = np.einsum("kij,kj->ki", A, points) - grads
    centre = np.linalg.solve(A.sum(axis=0), B.sum(axis=0))
    residuals = B - A @ centre
    count = (len(rows) + batch // 2) // batch
    edges = batch * np.arange(count)
    influences = np.linalg.solve(A.sum(axis=0), np.add.reduceat(residuals, edges).T).T
    return centre, influences, np.add.reduceat(A, edges)


def one_step_choice(influences, A, length, floor):
    """Double batches while they are shorter than the floor or in doubt, if the shortest are in doubt at all."""

    def joined(x):
        first = len(x) % 2 and len(x) > 1
        starts = np.arange(0, len(x) - 1, 2) + (np.arange(0, len(x) - 1, 2) > 0) * first
        return np.add.reduceat(x, starts)

    def variance(x):
        return len(x) / (len(x) - 1) * np.sum(x**2, axis=0)

    def doubted(x):
        ratios = [(len(y), np.median(variance(y) / variance(x))) for y in (joined(x), joined(joined(x)))]
        return any(ratio > 1.0 + np.sqrt(2.0 / count - 2.0 / len(x)) for count, ratio in ratios)

    doubt = doubted(influences)
    while doubt and len(influences) >= 16 and (length < floor or doubted(influences)):
        influences, A, length = joined(influences), joined(A), 2 * length
    return influences, A, length


def renewable_newton(rows, gradient, hessian, minimise, chunk, batch, burn_in=0):
    """theta_j of every chunk, the centre, the H_b and the residuals; the prior is one row's at theta_0 = 0.

    `minimise(rows, Q, centre)` finds the minimum of the rows' loss plus (theta - centre)' Q (theta - centre) / 2.
    """
    dim = len(gradient(np.zeros(len(rows[0]) - 1), rows[0]))
    prior = np.diag(np.mean([np.diag(hessian(np.zeros(dim), row)) for row in rows[:chunk]], axis=0))
    A, score, thetas, expanded = np.zeros((dim, dim)), np.zeros(dim), [], []
    for at in range(0, len(rows), chunk):
        part = rows[at : at + chunk]
        theta = minimise(part, A + prior, np.linalg.solve(A + prior, score))
        H = np.array([hessian(theta, row) for row in part])
        B = H @ theta - [gradient(theta, row) for row in part]
        A, score = A + H.sum(axis=0), score + B.sum(axis=0)
        thetas.append(theta)
        expanded += list(zip(H, B, strict=True))
    H, B = (np.array(values)[burn_in:] for values in zip(*expanded, strict=True))
    centre = np.linalg.solve(H.sum(axis=0), B.sum(axis=0))
    edges = np.arange(0, len(B), batch)
    return np.array(thetas), centre, np.add.reduceat(H, edges), np.add.reduceat(B - H @ centre, edges)


def higrad(rows, gradient, curvature, step, shared, burn_in=0):
    """Segments of a binary tree, one after the other; returns mu for each leaf and its SE in every coordinate.

    The first `burn_in` rows only move the root.
    """
    theta, levels = np.zeros(len(rows[0]) - 1), len(shared) + 1
    for k, row in enumerate(rows[:burn_in]):
        theta = theta - min(step(k + 1), 1.0 / curvature(theta, row)) * gradient(theta, row)
    rows = rows[burn_in:]
    leaves = 2 ** (levels - 1)
    at, ends, segments = 0, {(): theta}, {}
    for level in range(levels):
        threads = [tuple(int(bit) for bit in f"{t:b}".zfill(level)) if level else () for t in range(2**level)]
        size = shared[level] * 2**level if level < len(shared) else len(rows) - at
        before = burn_in + sum(shared[:level])
        for place, thread in enumerate(threads):
            theta, path = ends[thread[:-1]] if level else ends[()], []
            for count, row in enumerate(rows[at + place : at + size : 2**level]):
                eta = min(step(before + count + 1), 1.0 / curvature(theta, row))
                theta = theta - eta * gradient(theta, row)
                path.append(theta)
            segments[level, thread] = np.array(path)
            ends[thread] = theta
        at += size
    shares = [
        sum(len(path) for (at, _), path in segments.items() if at == level) / len(rows) for level in range(levels)
    ]
    names = [tuple(int(bit) for bit in f"{t:b}".zfill(levels - 1)) for t in range(leaves)]
    mu = np.array([sum(shares[k] * segments[k, name[:k]].mean(axis=0) for k in range(levels)) for name in names])
    S0 = np.zeros((leaves, leaves))
    for i, one in enumerate(names):
        for j, two in enumerate(names):
            for k in range(levels):
                if one[:k] == two[:k]:
                    S0[i, j] += shares[k] ** 2 / len(segments[k, one[:k]])
    gap, ones = mu - mu.mean(axis=0), np.ones(leaves)
    quadratic = np.diag(gap.T @ np.linalg.inv(S0) @ gap)
    return mu, np.sqrt(ones @ S0 @ ones * quadratic / (leaves**2 * (leaves - 1)))
