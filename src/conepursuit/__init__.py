"""Greedy optimisation over cones, with a proof of optimality attached to every answer.

>>> from conepursuit import Cone, Dictionary, FCMP, LeastSquares, minimize
>>> D = Dictionary([[1.0, 0.0], [1.0, 1.0]])
>>> result = minimize(LeastSquares([1.0, 2.0]), Cone(D), FCMP(variant=1))
>>> result.status.name, result.certificate.proven, result.weights.round(6).tolist()
('CONVERGED', True, [1.0, 1.0])
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from conepursuit.algorithms import (
    AFW,
    AMP,
    FCMP,
    FW,
    MP,
    NNMP,
    OMP,
    PFW,
    PWMP,
    Algorithm,
    LineAlgorithm,
)
from conepursuit.atoms import (
    ApproximateOracle,
    Atoms,
    AtomSet,
    Dictionary,
    FunctionAtoms,
    NonnegativeRankOne,
    NonnegativeSphere,
    NonnegativeSymmetric,
    PositiveSemidefinite,
    RankOnes,
    Symmetric,
    Union,
    UnitVectors,
    Vectors,
)
from conepursuit.callbacks import ProgressBar
from conepursuit.certificates import Certificate
from conepursuit.correction import Corrected
from conepursuit.domains import Cone, Domain, Hull, Span
from conepursuit.factored import FactoredMatrix
from conepursuit.fits import FitResult, NNLSResult
from conepursuit.iterate import Direction, Iterate, Local
from conepursuit.nnfit import nnfit
from conepursuit.nnls import certify_nnls, nnls, nnls_gram
from conepursuit.objectives import (
    BetaDivergence,
    Composed,
    EntrywiseLoss,
    FactoredKullbackLeibler,
    FactoredLeastSquares,
    FreeIntercept,
    FunctionObjective,
    Huber,
    KullbackLeibler,
    LeastSquares,
    Logistic,
    Objective,
    Poisson,
    Quadratic,
)
from conepursuit.path import NNLSPath, nnls_path
from conepursuit.penalties import PenaltyPath, penalty_path
from conepursuit.plotting import plot_convergence
from conepursuit.results import Result, State, Status, Trace, certify
from conepursuit.solve import iterates, minimize
from conepursuit.steps import (
    AdaptiveStep,
    CurvatureStep,
    ExactStep,
    OpenLoopStep,
    ShortStep,
    StepRule,
)

if TYPE_CHECKING:
    from conepursuit.estimators import (
        ActiveAtomsDisplay,
        CoefficientPathDisplay,
        ComponentsDisplay,
        ConicClassifier,
        ConicCoder,
        ConicPath,
        ConicRegressor,
        ConicRegressorCV,
        GreedyNMF,
        NonnegativeGarroteClassifier,
        NonnegativeGarroteRegressor,
        PathChoiceDisplay,
        RankPathDisplay,
        ResidualsDisplay,
    )

__version__ = version("conepursuit")

__all__ = [
    "AFW",
    "AMP",
    "FCMP",
    "FW",
    "MP",
    "NNMP",
    "OMP",
    "PFW",
    "PWMP",
    "ActiveAtomsDisplay",
    "AdaptiveStep",
    "Algorithm",
    "ApproximateOracle",
    "AtomSet",
    "Atoms",
    "BetaDivergence",
    "Certificate",
    "CoefficientPathDisplay",
    "ComponentsDisplay",
    "Composed",
    "Cone",
    "ConicClassifier",
    "ConicCoder",
    "ConicPath",
    "ConicRegressor",
    "ConicRegressorCV",
    "Corrected",
    "CurvatureStep",
    "Dictionary",
    "Direction",
    "Domain",
    "EntrywiseLoss",
    "ExactStep",
    "FactoredKullbackLeibler",
    "FactoredLeastSquares",
    "FactoredMatrix",
    "FitResult",
    "FreeIntercept",
    "FunctionAtoms",
    "FunctionObjective",
    "GreedyNMF",
    "Huber",
    "Hull",
    "Iterate",
    "KullbackLeibler",
    "LeastSquares",
    "LineAlgorithm",
    "Local",
    "Logistic",
    "NNLSPath",
    "NNLSResult",
    "NonnegativeGarroteClassifier",
    "NonnegativeGarroteRegressor",
    "NonnegativeRankOne",
    "NonnegativeSphere",
    "NonnegativeSymmetric",
    "Objective",
    "OpenLoopStep",
    "PathChoiceDisplay",
    "PenaltyPath",
    "Poisson",
    "PositiveSemidefinite",
    "ProgressBar",
    "Quadratic",
    "RankOnes",
    "RankPathDisplay",
    "ResidualsDisplay",
    "Result",
    "ShortStep",
    "Span",
    "State",
    "Status",
    "StepRule",
    "Symmetric",
    "Trace",
    "Union",
    "UnitVectors",
    "Vectors",
    "certify",
    "certify_nnls",
    "iterates",
    "minimize",
    "nnfit",
    "nnls",
    "nnls_gram",
    "nnls_path",
    "penalty_path",
    "plot_convergence",
]


def __getattr__(name: str) -> Any:
    """Load the estimators when they are asked for: scikit-learn takes a second to import."""
    if name in __all__:
        return getattr(import_module("conepursuit.estimators"), name)
    raise AttributeError(f"module 'conepursuit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
