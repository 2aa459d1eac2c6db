"""Compare algorithms on one problem, with the sublinear bound of the paper's Theorem 2."""

import matplotlib.pyplot as plt
import numpy as np

from conepursuit import (
    AMP,
    FCMP,
    NNMP,
    PWMP,
    Cone,
    Dictionary,
    LeastSquares,
    minimize,
    plot_convergence,
)
from conepursuit.theory import rate_bounds

rng = np.random.default_rng(0)
D = rng.random((50, 100))
D /= np.linalg.norm(D, axis=0)
y = D @ rng.uniform(0, 5, 100)
y[rng.integers(0, 50, 10)] *= -1

objective, cone = LeastSquares(y), Cone(Dictionary(D))
algorithms = {"NNMP": NNMP(), "AMP": AMP(), "PWMP": PWMP(), "FCMP": FCMP()}
results = {name: minimize(objective, cone, a, max_iter=60) for name, a in algorithms.items()}

best = results["FCMP"]
bounds = rate_bounds(results["NNMP"], objective, cone, algorithms["NNMP"], optimum=best)

plot_convergence(results, optimum=best.value, bounds=bounds)
plt.show()
