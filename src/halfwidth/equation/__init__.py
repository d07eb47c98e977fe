"""The linearised estimating equation: what `auto`, `fit`, the adapters and the distributed fits feed.

It never sees rows: learners add sums to a `BatchStore` (rows in time order) or a `BucketStore` (groups in any order),
and the `Equation` of these knows its root, its covariance and the degrees of freedom of every coefficient.
"""

from halfwidth.equation.batch_store import BatchStore, Sums, capacity_for
from halfwidth.equation.equation import Equation
from halfwidth.equation.linear_algebra import inverse, solution, solve_spd

__all__ = ["BatchStore", "Equation", "Sums", "capacity_for", "inverse", "solution", "solve_spd"]
