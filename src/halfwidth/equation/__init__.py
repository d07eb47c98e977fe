"""The linearised estimating equation: what `auto`, `fit`, the adapters and the distributed fits feed.

It never sees rows: learners add sums to a `BatchStore` (rows in time order) or a `BucketStore` (groups in any order),
and the `Equation` of these knows its root, its covariance and the degrees of freedom of every coefficient. It is for
the packages above it; users meet its results. `Equation` is the contract; what else is imported here serves the stores.
"""

from halfwidth.equation.batch_store import BatchStore as BatchStore
from halfwidth.equation.batch_sums import Sums as Sums
from halfwidth.equation.batch_sums import capacity_for as capacity_for
from halfwidth.equation.equation import Equation as Equation
from halfwidth.equation.information_store import InformationStore as InformationStore
from halfwidth.equation.linear_algebra import inverse as inverse
from halfwidth.equation.linear_algebra import solution as solution
from halfwidth.equation.linear_algebra import solve_spd as solve_spd
from halfwidth.equation.store_layout import restored_store as restored_store

__all__ = ["Equation"]
