# ruff: noqa: I001  (one import statement for each package)
"""The public names and their types; `__init__.py` reads from here in which package each name lives."""

from halfwidth.inference import (
    Interval as Interval,
    Result as Result,
)
from halfwidth.learners import (
    Auto as Auto,
    CappedSGD as CappedSGD,
    ChunkedNewton as ChunkedNewton,
    HiGrad as HiGrad,
    HullOfRuns as HullOfRuns,
    ImplicitSGD as ImplicitSGD,
    LocalSGD as LocalSGD,
    MiniBatchBootstrap as MiniBatchBootstrap,
    MultiplierBootstrap as MultiplierBootstrap,
    OneStep as OneStep,
    ParallelRuns as ParallelRuns,
    PlugIn as PlugIn,
    RichardsonRomberg as RichardsonRomberg,
    SGD as SGD,
    TrajectoryRegression as TrajectoryRegression,
    TruncatedSGD as TruncatedSGD,
    ZerothOrderSGD as ZerothOrderSGD,
    learn_replicates as learn_replicates,
    learn_world as learn_world,
)
from halfwidth.models import (
    GammaRegressor as GammaRegressor,
    HuberRegressor as HuberRegressor,
    LinearRegression as LinearRegression,
    LogisticRegression as LogisticRegression,
    MultinomialRegression as MultinomialRegression,
    NegativeBinomialRegressor as NegativeBinomialRegressor,
    PoissonRegressor as PoissonRegressor,
    QuantileRegressor as QuantileRegressor,
    fit as fit,
    load as load,
    performative as performative,
    strategic as strategic,
)
from halfwidth.problems import (
    Problem as Problem,
    problem as problem,
)
from halfwidth.schedules import (
    BlockPlan as BlockPlan,
    ConstantStep as ConstantStep,
    PowerStep as PowerStep,
    Threshold as Threshold,
    TruncationSets as TruncationSets,
)
from halfwidth.study import (
    Spec as Spec,
    run_study as run_study,
)
from halfwidth.watchers import (
    BurnIn as BurnIn,
    ConfidenceSequence as ConfidenceSequence,
    EqualBatchMeans as EqualBatchMeans,
    Extrapolated as Extrapolated,
    FixedBatchMeans as FixedBatchMeans,
    FlatTopBatchMeans as FlatTopBatchMeans,
    FunctionalScaling as FunctionalScaling,
    IncreasingBatchMeans as IncreasingBatchMeans,
    OverlappingBatchMeans as OverlappingBatchMeans,
    RandomScaling as RandomScaling,
    SpectralVariance as SpectralVariance,
)

__version__: str
__all__: list[str]
