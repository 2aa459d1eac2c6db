"""Greedy optimisation over cones, with a proof of optimality attached to every answer.

>>> from conepursuit import Cone, Dictionary, FCMP, LeastSquares, minimize
>>> D = Dictionary([[1.0, 0.0], [1.0, 1.0]])
>>> result = minimize(LeastSquares([1.0, 2.0]), Cone(D), FCMP())
>>> result.status.name, result.certificate.proven, result.weights.round(6).tolist()
('CONVERGED', True, [1.0, 1.0])
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from conepursuit.losses import LOSSES

if TYPE_CHECKING:
    from conepursuit.atoms import ApproximateOracle as ApproximateOracle
    from conepursuit.atoms import Atoms as Atoms
    from conepursuit.atoms import AtomSet as AtomSet
    from conepursuit.atoms import Dictionary as Dictionary
    from conepursuit.atoms import FunctionAtoms as FunctionAtoms
    from conepursuit.atoms import NonnegativeRankOne as NonnegativeRankOne
    from conepursuit.atoms import NonnegativeRankOneTensor as NonnegativeRankOneTensor
    from conepursuit.atoms import NonnegativeSphere as NonnegativeSphere
    from conepursuit.atoms import NonnegativeSymmetric as NonnegativeSymmetric
    from conepursuit.atoms import PositiveSemidefinite as PositiveSemidefinite
    from conepursuit.atoms import RankOnes as RankOnes
    from conepursuit.atoms import Symmetric as Symmetric
    from conepursuit.atoms import Union as Union
    from conepursuit.atoms import UnitVectors as UnitVectors
    from conepursuit.atoms import Vectors as Vectors
    from conepursuit.callbacks import ProgressBar as ProgressBar
    from conepursuit.checkpoints import Checkpoint as Checkpoint
    from conepursuit.estimators import ActiveAtomsDisplay as ActiveAtomsDisplay
    from conepursuit.estimators import CoefficientPathDisplay as CoefficientPathDisplay
    from conepursuit.estimators import ComponentsDisplay as ComponentsDisplay
    from conepursuit.estimators import ConicClassifier as ConicClassifier
    from conepursuit.estimators import ConicCoder as ConicCoder
    from conepursuit.estimators import ConicPath as ConicPath
    from conepursuit.estimators import ConicRegressor as ConicRegressor
    from conepursuit.estimators import ConicRegressorCV as ConicRegressorCV
    from conepursuit.estimators import GreedyCP as GreedyCP
    from conepursuit.estimators import GreedyNMF as GreedyNMF
    from conepursuit.estimators import NonnegativeGarroteClassifier as NonnegativeGarroteClassifier
    from conepursuit.estimators import NonnegativeGarroteRegressor as NonnegativeGarroteRegressor
    from conepursuit.estimators import PathChoiceDisplay as PathChoiceDisplay
    from conepursuit.estimators import RankPathDisplay as RankPathDisplay
    from conepursuit.estimators import ResidualsDisplay as ResidualsDisplay
    from conepursuit.estimators import TensorComponentsDisplay as TensorComponentsDisplay
    from conepursuit.factorization.corrected import Corrected as Corrected
    from conepursuit.least_squares.api import nnls as nnls
    from conepursuit.least_squares.audit import certify_nnls as certify_nnls
    from conepursuit.least_squares.gram import nnls_gram as nnls_gram
    from conepursuit.least_squares.path import NNLSPath as NNLSPath
    from conepursuit.least_squares.path import NNLSPathFit as NNLSPathFit
    from conepursuit.least_squares.path import nnls_path as nnls_path
    from conepursuit.loss_fits import nnfit as nnfit
    from conepursuit.loss_fits import nnfit_path as nnfit_path
    from conepursuit.loss_fits.path import LossPath as LossPath
    from conepursuit.loss_fits.path import LossPathFit as LossPathFit
    from conepursuit.low_rank import FactoredMatrix as FactoredMatrix
    from conepursuit.low_rank import FactoredTensor as FactoredTensor
    from conepursuit.matrix_fits.results import FitResult as FitResult
    from conepursuit.matrix_fits.results import NNLSResult as NNLSResult
    from conepursuit.objectives import BetaDivergence as BetaDivergence
    from conepursuit.objectives import Composed as Composed
    from conepursuit.objectives import EntrywiseLoss as EntrywiseLoss
    from conepursuit.objectives import FactoredKullbackLeibler as FactoredKullbackLeibler
    from conepursuit.objectives import FactoredLeastSquares as FactoredLeastSquares
    from conepursuit.objectives import FreeIntercept as FreeIntercept
    from conepursuit.objectives import FunctionObjective as FunctionObjective
    from conepursuit.objectives import Huber as Huber
    from conepursuit.objectives import KullbackLeibler as KullbackLeibler
    from conepursuit.objectives import LeastSquares as LeastSquares
    from conepursuit.objectives import Logistic as Logistic
    from conepursuit.objectives import Objective as Objective
    from conepursuit.objectives import Poisson as Poisson
    from conepursuit.objectives import Quadratic as Quadratic
    from conepursuit.plotting import plot_convergence as plot_convergence
    from conepursuit.pursuit.algorithms import AFW as AFW
    from conepursuit.pursuit.algorithms import AMP as AMP
    from conepursuit.pursuit.algorithms import FCMP as FCMP
    from conepursuit.pursuit.algorithms import FW as FW
    from conepursuit.pursuit.algorithms import MP as MP
    from conepursuit.pursuit.algorithms import NNMP as NNMP
    from conepursuit.pursuit.algorithms import OMP as OMP
    from conepursuit.pursuit.algorithms import PFW as PFW
    from conepursuit.pursuit.algorithms import PWMP as PWMP
    from conepursuit.pursuit.algorithms import Algorithm as Algorithm
    from conepursuit.pursuit.algorithms import LineAlgorithm as LineAlgorithm
    from conepursuit.pursuit.certify import certify as certify
    from conepursuit.pursuit.domains import Cone as Cone
    from conepursuit.pursuit.domains import Domain as Domain
    from conepursuit.pursuit.domains import Hull as Hull
    from conepursuit.pursuit.domains import Span as Span
    from conepursuit.pursuit.iterate import Direction as Direction
    from conepursuit.pursuit.iterate import Iterate as Iterate
    from conepursuit.pursuit.iterate import Local as Local
    from conepursuit.pursuit.penalty_path import PenaltyPath as PenaltyPath
    from conepursuit.pursuit.penalty_path import penalty_path as penalty_path
    from conepursuit.pursuit.results import Result as Result
    from conepursuit.pursuit.results import State as State
    from conepursuit.pursuit.results import Trace as Trace
    from conepursuit.pursuit.solve import iterates as iterates
    from conepursuit.pursuit.solve import minimize as minimize
    from conepursuit.pursuit.steps import AdaptiveStep as AdaptiveStep
    from conepursuit.pursuit.steps import CurvatureStep as CurvatureStep
    from conepursuit.pursuit.steps import ExactStep as ExactStep
    from conepursuit.pursuit.steps import OpenLoopStep as OpenLoopStep
    from conepursuit.pursuit.steps import ShortStep as ShortStep
    from conepursuit.pursuit.steps import StepRule as StepRule
    from conepursuit.status import Certificate as Certificate
    from conepursuit.status import Status as Status
    from conepursuit.unmixing import Unmixer as Unmixer

    __version__: str

_HOMES = {
    "atoms": (
        "ApproximateOracle Atoms AtomSet Dictionary FunctionAtoms NonnegativeRankOne "
        "NonnegativeRankOneTensor NonnegativeSphere NonnegativeSymmetric PositiveSemidefinite "
        "RankOnes Symmetric Union UnitVectors Vectors"
    ),
    "callbacks": "ProgressBar",
    "checkpoints": "Checkpoint",
    "estimators": (
        "ActiveAtomsDisplay CoefficientPathDisplay ComponentsDisplay ConicClassifier ConicCoder "
        "ConicPath ConicRegressor ConicRegressorCV GreedyCP GreedyNMF NonnegativeGarroteClassifier "
        "NonnegativeGarroteRegressor PathChoiceDisplay RankPathDisplay ResidualsDisplay "
        "TensorComponentsDisplay"
    ),
    "factorization.corrected": "Corrected",
    "least_squares.api": "nnls",
    "least_squares.audit": "certify_nnls",
    "least_squares.gram": "nnls_gram",
    "least_squares.path": "NNLSPath NNLSPathFit nnls_path",
    "loss_fits": "nnfit nnfit_path",
    "loss_fits.path": "LossPath LossPathFit",
    "low_rank": "FactoredMatrix FactoredTensor",
    "matrix_fits.results": "FitResult NNLSResult",
    "objectives": (
        "BetaDivergence Composed EntrywiseLoss FactoredKullbackLeibler FactoredLeastSquares "
        "FreeIntercept FunctionObjective Huber KullbackLeibler LeastSquares Logistic Objective "
        "Poisson Quadratic"
    ),
    "plotting": "plot_convergence",
    "pursuit.algorithms": "AFW AMP FCMP FW MP NNMP OMP PFW PWMP Algorithm LineAlgorithm",
    "pursuit.certify": "certify",
    "pursuit.domains": "Cone Domain Hull Span",
    "pursuit.iterate": "Direction Iterate Local",
    "pursuit.penalty_path": "PenaltyPath penalty_path",
    "pursuit.results": "Result State Trace",
    "pursuit.solve": "iterates minimize",
    "pursuit.steps": "AdaptiveStep CurvatureStep ExactStep OpenLoopStep ShortStep StepRule",
    "status": "Certificate Status",
    "unmixing": "Unmixer",
}
"""In which module each public name lives; it is imported when the name is first asked for.

So ``from conepursuit import nnls`` loads neither the algorithms nor SciPy nor scikit-learn.
"""

_HOME_OF = {loss.kind: f"objectives.{loss.module}" for loss in LOSSES.values()} | {
    name: home for home, names in _HOMES.items() for name in names.split()
}

__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("conepursuit")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'conepursuit' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"conepursuit.{_HOME_OF[name]}"), name)
    return value


def __dir__() -> list[str]:
    return __all__
