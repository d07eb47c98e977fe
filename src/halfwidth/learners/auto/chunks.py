"""The loop over chunks, with the rows' Hessian or with differences of gradients.

A chunk is m rows drawn (or given) while theta is deployed. With H, g the sums over its rows of Hessian and gradient
at the linearisation point `point`, it adds, relative to a fixed `origin`,

    A += H,   b += H (point - origin) - g + m Q,   L += m (point - origin),   T += m (theta - origin)

to the open batch `at`, and opens the next one when this one has `length` rows. It notes g and theta - point for the
regression of the response. Without a Hessian A stays zero and b lacks H (point - origin); the mean Hessian is then
collected column by column, from the spacings in `plan`.

While the last move of the linearisation point is being weighed (`moved`), D collects what is not linear in it,

    g(previous) - g(point) - H (previous - point).

Then theta moves, theta -= eta p with p = P g(theta), and never past the chunk's own minimum along p:

    eta = min(eta_k, g(theta)'p / p'(H(theta) + m J) p), and 0 if g(theta)'p <= 0.

Row c of `plan` belongs to chunk c: its step eta_k, then d signed spacings, 0 where no difference is made. The loop ends
after as many chunks as there are rows in `plan`; rows that do not fill a chunk wait in `chunk`.
"""

from __future__ import annotations

import numpy as np

from halfwidth.compiled import Function, jitable

_PROBE = 0.5
_FRACTION = 0.1


@jitable
def held_step(step, slope, bend):  # type: ignore[no-untyped-def]
    """The step, shortened to the minimum along it; none against the slope."""
    if slope <= 0.0:
        return 0.0
    if step * bend > slope:
        return slope / bend
    return step


@jitable
def spread(H, shift, offset, A, total, product):  # type: ignore[no-untyped-def]
    """Complete H by its multiple of I, add it to A and to the total, and give H offset, all in one pass over H."""
    for i in range(H.shape[0]):
        H[i, i] += shift
        along = 0.0
        for j in range(H.shape[0]):
            A[i, j] += H[i, j]
            total[i, j] += H[i, j]
            along += H[i, j] * offset[j]
        product[i] = along


def with_hessian(sample: Function, gradient: Function, hessian: Function, fingerprint: str) -> Function:
    """The loop for problems with a Hessian."""

    def curved_chunks(  # type: ignore[no-untyped-def]
        draw,
        rng,
        theta,
        state,
        params,
        rows,
        thetas,
        plan,
        chunk,
        filled,
        moved,
        frozen,
        batches,
        at,
        length,
        totals,
        notes,
    ):
        fingerprint  # noqa: B018  (part of the disk cache's key)
        point, previous, origin, P, J, Q = frozen
        A, b, L, T, n, moved_rows = batches
        hessian_sum, hessian_rows, D = totals
        noted_g, noted_offset = notes
        m, dim = chunk.shape[0], theta.shape[0]
        deployed_g, g, previous_g = np.empty(dim), np.empty(dim), np.empty(dim)
        grad, direction, product, H = np.empty(dim), np.empty(dim), np.empty(dim), np.empty((dim, dim))
        directions, weighted = np.empty((m, dim)), np.empty((m, dim))
        used, done, held = 0, 0, 0
        while used < rows.shape[0] and done < plan.shape[0]:
            row = rows[used]
            if draw:
                sample(rng, theta, state, params, row)
            for j in range(row.shape[0]):
                chunk[filled, j] = row[j]
            filled += 1
            if filled == m:
                deployed_g[:] = 0.0
                g[:] = 0.0
                previous_g[:] = 0.0
                shift = 0.0
                for i in range(m):
                    gradient(theta, chunk[i], params, grad)
                    for j in range(dim):
                        deployed_g[j] += grad[j]
                    gradient(point, chunk[i], params, grad)
                    for j in range(dim):
                        g[j] += grad[j]
                    if moved:
                        gradient(previous, chunk[i], params, grad)
                        for j in range(dim):
                            previous_g[j] += grad[j]
                    w, c = hessian(point, chunk[i], params, directions[i])
                    shift += c
                    for j in range(dim):
                        weighted[i, j] = w * directions[i, j]
                np.dot(directions.T, weighted, H)
                spread(H, shift, point - origin, A[at], hessian_sum, product)
                hessian_rows += m
                b[at] += product - g + m * Q
                L[at] += m * (point - origin)
                T[at] += m * (theta - origin)
                if moved:
                    D += previous_g - g - np.dot(H, previous - point)
                n[at] += m
                moved_rows[at] += m * moved
                at += n[at] >= length
                noted_g[done] = g
                noted_offset[done] = theta - point
                p = np.dot(P, deployed_g)
                bend, length2 = m * np.dot(p, np.dot(J, p)), np.dot(p, p)
                for i in range(m):
                    w, c = hessian(theta, chunk[i], params, direction)
                    along = 0.0
                    for j in range(dim):
                        along += direction[j] * p[j]
                    bend += w * along * along + c * length2
                step = held_step(plan[done, 0], np.dot(deployed_g, p), bend)
                held += step < plan[done, 0]
                theta -= step * p
                filled = 0
                done += 1
            for j in range(dim):
                thetas[used, j] = theta[j]
            used += 1
        return used, filled, done, held

    return curved_chunks


def with_differences(sample: Function, gradient: Function, fingerprint: str) -> Function:
    """The loop for problems with a gradient only."""

    def differenced_chunks(  # type: ignore[no-untyped-def]
        draw,
        rng,
        theta,
        state,
        params,
        rows,
        thetas,
        plan,
        chunk,
        filled,
        moved,
        frozen,
        batches,
        at,
        length,
        totals,
        notes,
    ):
        fingerprint  # noqa: B018  (part of the disk cache's key)
        point, previous, origin, P, J, Q = frozen
        _, b, L, T, n, moved_rows = batches
        hessian_sum, hessian_rows, D = totals
        noted_g, noted_offset = notes
        m, dim = chunk.shape[0], theta.shape[0]
        points, sums = np.empty((dim + 4, dim)), np.empty((dim + 4, dim))
        grad, probed, probed_g = np.empty(dim), np.empty(dim), np.empty(dim)
        used, done, held = 0, 0, 0
        while used < rows.shape[0] and done < plan.shape[0]:
            row = rows[used]
            if draw:
                sample(rng, theta, state, params, row)
            for j in range(row.shape[0]):
                chunk[filled, j] = row[j]
            filled += 1
            if filled == m:
                points[0] = theta
                points[1] = point
                count = 2
                for j in range(dim):
                    if plan[done, 1 + j] != 0.0:
                        points[count] = point
                        points[count, j] += plan[done, 1 + j]
                        count += 1
                if moved:
                    points[count] = previous
                    points[count + 1] = point + _FRACTION * (previous - point)
                    count += 2
                sums[:] = 0.0
                for i in range(m):
                    for q in range(count):
                        gradient(points[q], chunk[i], params, grad)
                        for j in range(dim):
                            sums[q, j] += grad[j]
                g = sums[1]
                if moved:
                    bent = sums[count - 2] - g - (sums[count - 1] - g) / _FRACTION
                    D += bent / (1.0 - _FRACTION)
                q = 2
                for j in range(dim):
                    if plan[done, 1 + j] != 0.0:
                        hessian_sum[:, j] += (sums[q] - g) / plan[done, 1 + j]
                        hessian_rows[j] += m
                        q += 1
                b[at] += m * Q - g
                L[at] += m * (point - origin)
                T[at] += m * (theta - origin)
                n[at] += m
                moved_rows[at] += m * moved
                at += n[at] >= length
                noted_g[done] = g
                noted_offset[done] = theta - point
                p = np.dot(P, sums[0])
                step = plan[done, 0]
                probed[:] = theta - _PROBE * step * p
                probed_g[:] = 0.0
                for i in range(m):
                    gradient(probed, chunk[i], params, grad)
                    for j in range(dim):
                        probed_g[j] += grad[j]
                bend = np.dot(p, sums[0] - probed_g) / (_PROBE * step) + m * np.dot(p, np.dot(J, p))
                step = held_step(step, np.dot(sums[0], p), bend)
                held += step < plan[done, 0]
                theta -= step * p
                filled = 0
                done += 1
            for j in range(dim):
                thetas[used, j] = theta[j]
            used += 1
        return used, filled, done, held

    return differenced_chunks
