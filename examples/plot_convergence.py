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

rng = np.random.default_rng(0)
D = rng.random((50, 100))
D /= np.linalg.norm(D, axis=0)
y = D @ rng.uniform(0, 5, 100)
y[rng.integers(0, 50, 10)] *= -1

objective, cone = LeastSquares(y), Cone(Dictionary(D))
algorithms = {"NNMP": NNMP(), "AMP": AMP(), "PWMP": PWMP(), "FCMP": FCMP(variant=1)}
results = {name: minimize(objective, cone, a, max_iter=60) for name, a in algorithms.items()}

best = results["FCMP"]
# rho bounds the weights of the minimiser and of all iterates; here they grow to the end.
rho = max(result.weights.sum() for result in results.values())
start = results["NNMP"].trace["value"][0] - best.value
bound = {"Theorem 2": lambda t: 4 * (2 * rho**2 + start) / (t + 4)}

plot_convergence(results, optimum=best.value, bounds=bound)
plt.show()
