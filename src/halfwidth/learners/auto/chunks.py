"""The loop over chunks, with the rows' Hessian or with differences of gradients.

A chunk is m rows drawn (or given) while theta is deployed. With H, g the sums over its rows of Hessian and gradient
at the linearisation point `point`, it adds, relative to a fixed `origin`,

    A += H,   b += H (point - origin) - g + m Q,   T += m (theta - origin)

to the open batch `at`, and opens the next one when this one has `length` rows; of A only the lower triangle, for a
Hessian is symmetric. It notes g and theta - point for the regression of the response. Without a Hessian, H is made of
differences of gradients on the chunk's rows, one coordinate at a time, and A is taken whole; only some chunks do it,
the others take over the last `H`.

While the last move of the linearisation point is being weighed (`moved`), D collects what is not linear in it,

    g(previous) - g(point) - H (previous - point).

Then theta moves, theta -= eta p with p = P g(theta), and never past the chunk's own minimum along p:

    eta = min(eta_k, g(theta)'p / p'(H(theta) + m J) p), and 0 if g(theta)'p <= 0.

Row c of `plan` belongs to chunk c: its step eta_k and the sign of its differences, 0 where none are made. The loop ends
after as many chunks as there are rows in `plan`, or before a row that is not usable; rows that do not fill a chunk wait
in `chunk`, where the plan's last chunk is left otherwise. `total` is the sum of theta - theta_0 over the rows, and
`thetas`, unless it is empty, takes the iterates themselves.
"""

from __future__ import annotations

import numpy as np

from halfwidth.kernels.arrays import Function
from halfwidth.kernels.compile import jitable
from halfwidth.kernels.products import add_symmetric

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
def add_to(total, part):  # type: ignore[no-untyped-def]
    for j in range(part.shape[0]):
        total[j] += part[j]


@jitable
def copy_rows(rows, first, end, into, at):  # type: ignore[no-untyped-def]
    """into[at:] = rows[first:end]; as a loop, since the compiler takes seconds over the checks of an assignment."""
    for i in range(end - first):
        for j in range(rows.shape[1]):
            into[at + i, j] = rows[first + i, j]


@jitable
def deploy(theta, rows, theta_0, total, thetas, first):  # type: ignore[no-untyped-def]
    """Theta is deployed for so many rows, from the given one on."""
    for j in range(theta.shape[0]):
        total[j] += rows * (theta[j] - theta_0[j])
    if thetas.shape[0]:
        for i in range(first, first + rows):
            for j in range(theta.shape[0]):
                thetas[i, j] = theta[j]


@jitable
def along_curvature(directions, weights, shift, step, scratch, product):  # type: ignore[no-untyped-def]
    """product = (sum_i w_i u_i u_i' + shift I) step."""
    np.dot(directions, step, scratch)
    for i in range(weights.shape[0]):
        scratch[i] *= weights[i]
    np.dot(directions.T, scratch, product)
    for j in range(step.shape[0]):
        product[j] += shift * step[j]


def with_hessian(sample: Function, usable: Function, gradient: Function, hessian: Function) -> Function:
    """The loop for problems with a Hessian."""

    def curved_chunks(  # type: ignore[no-untyped-def]
        rng,
        theta,
        state,
        params,
        rows,
        thetas,
        theta_0,
        total,
        plan,
        chunk,
        filled,
        moved,
        frozen,
        batches,
        at,
        length,
        measured,
        notes,
    ):
        point, previous, origin, P, J, Q, _ = frozen
        A, b, T, n, moved_rows = batches
        D, _ = measured
        noted_g, noted_offset = notes
        m, dim = chunk.shape[0], theta.shape[0]
        deployed_g, g, previous_g = np.empty(dim), np.empty(dim), np.empty(dim)
        grad, direction, product, p = np.empty(dim), np.empty(dim), np.empty(dim), np.empty(dim)
        directions, weighted = np.empty((m, dim)), np.empty((m, dim))
        weights, scratch, odd = np.empty(m), np.empty(m), np.empty(rows.shape[1])
        used, done, held = 0, 0, 0
        block = chunk
        while used < rows.shape[0] and done < plan.shape[0]:
            end = min(used + m - filled, rows.shape[0])
            for i in range(used, end):
                sample(rng, theta, state, params, rows[i])
            whole = filled == 0 and end - used == m
            if whole:
                block = rows[used:end]
            else:
                for i in range(used, end):
                    if not usable(rows[i]):
                        end = i
                        break
                copy_rows(rows, used, end, chunk, filled)
                filled += end - used
                if filled < m:
                    deploy(theta, end - used, theta_0, total, thetas, used)
                    used = end
                    break
                block = chunk
                filled = 0
            deployed_g[:] = 0.0
            g[:] = 0.0
            shift = 0.0
            odd[:] = 0.0
            for i in range(m):
                for j in range(odd.shape[0]):
                    odd[j] += 0.0 * block[i, j]
                gradient(theta, block[i], params, grad)
                add_to(deployed_g, grad)
                gradient(point, block[i], params, grad)
                add_to(g, grad)
                weights[i], c = hessian(point, block[i], params, directions[i])
                shift += c
                for j in range(dim):
                    weighted[i, j] = weights[i] * directions[i, j]
            if not usable(odd):
                while usable(block[filled]):
                    copy_rows(block, filled, filled + 1, chunk, filled)
                    filled += 1
                deploy(theta, filled, theta_0, total, thetas, used)
                used += filled
                break
            deploy(theta, end - used - 1, theta_0, total, thetas, used)
            add_symmetric(directions, weighted, A[at].T)
            for j in range(dim):
                A[at, j, j] += shift
            along_curvature(directions, weights, shift, point - origin, scratch, product)
            for j in range(dim):
                b[at, j] += product[j] - g[j] + m * Q[j]
                T[at, j] += m * (theta[j] - origin[j])
                noted_g[done, j] = g[j]
                noted_offset[done, j] = theta[j] - point[j]
            if moved:
                previous_g[:] = 0.0
                for i in range(m):
                    gradient(previous, block[i], params, grad)
                    add_to(previous_g, grad)
                along_curvature(directions, weights, shift, previous - point, scratch, product)
                D += previous_g - g - product
            n[at] += m
            moved_rows[at] += m * moved
            at += n[at] >= length
            np.dot(P, deployed_g, p)
            bend, length2 = m * np.dot(p, np.dot(J, p)), np.dot(p, p)
            for i in range(m):
                w, c = hessian(theta, block[i], params, direction)
                along = 0.0
                for j in range(dim):
                    along += direction[j] * p[j]
                bend += w * along * along + c * length2
            step = held_step(plan[done, 0], np.dot(deployed_g, p), bend)
            held += step < plan[done, 0]
            theta -= step * p
            deploy(theta, 1, theta_0, total, thetas, end - 1)
            used = end
            done += 1
            if whole and done == plan.shape[0]:
                copy_rows(block, 0, m, chunk, 0)
        return used, filled, done, held

    return curved_chunks


def with_differences(sample: Function, usable: Function, gradient: Function) -> Function:
    """The loop for problems with a gradient only."""

    def differenced_chunks(  # type: ignore[no-untyped-def]
        rng,
        theta,
        state,
        params,
        rows,
        thetas,
        theta_0,
        total,
        plan,
        chunk,
        filled,
        moved,
        frozen,
        batches,
        at,
        length,
        measured,
        notes,
    ):
        point, previous, origin, P, J, Q, spacing = frozen
        A, b, T, n, moved_rows = batches
        D, H = measured
        noted_g, noted_offset = notes
        m, dim = chunk.shape[0], theta.shape[0]
        points, sums = np.empty((dim + 4, dim)), np.empty((dim + 4, dim))
        grad, probed, probed_g = np.empty(dim), np.empty(dim), np.empty(dim)
        used, done, held = 0, 0, 0
        while used < rows.shape[0] and done < plan.shape[0]:
            end = min(used + m - filled, rows.shape[0])
            for i in range(used, end):
                sample(rng, theta, state, params, rows[i])
                if not usable(rows[i]):
                    end = i
                    break
            copy_rows(rows, used, end, chunk, filled)
            filled += end - used
            if filled < m:
                deploy(theta, end - used, theta_0, total, thetas, used)
                used = end
                break
            filled = 0
            deploy(theta, end - used - 1, theta_0, total, thetas, used)
            points[0] = theta
            points[1] = point
            count = 2
            sign = plan[done, 1]
            if sign != 0.0:
                for j in range(dim):
                    points[count] = point
                    points[count, j] += sign * spacing[j]
                    count += 1
            if moved:
                points[count] = previous
                points[count + 1] = point + _FRACTION * (previous - point)
                count += 2
            sums[:] = 0.0
            for i in range(m):
                for q in range(count):
                    gradient(points[q], chunk[i], params, grad)
                    add_to(sums[q], grad)
            g = sums[1]
            if moved:
                bent = sums[count - 2] - g - (sums[count - 1] - g) / _FRACTION
                D += bent / (1.0 - _FRACTION)
            if sign != 0.0:
                for j in range(dim):
                    H[:, j] = (sums[2 + j] - g) / (sign * spacing[j])
            A[at] += H
            b[at] += np.dot(H, point - origin) - g + m * Q
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
                add_to(probed_g, grad)
            bend = np.dot(p, sums[0] - probed_g) / (_PROBE * step) + m * np.dot(p, np.dot(J, p))
            step = held_step(step, np.dot(sums[0], p), bend)
            held += step < plan[done, 0]
            theta -= step * p
            deploy(theta, 1, theta_0, total, thetas, end - 1)
            used = end
            done += 1
        return used, filled, done, held

    return differenced_chunks
