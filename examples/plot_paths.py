"""Choose a penalty and a number of features on real data, and look at the paths.

The diabetes data of scikit-learn: how a disease progressed in 442 patients, and ten measurements.
"""

from matplotlib import pyplot as plt
from sklearn.datasets import load_diabetes

from conepursuit import (
    ActiveAtomsDisplay,
    CoefficientPathDisplay,
    ConicRegressorCV,
    PathChoiceDisplay,
)

X, y = load_diabetes(return_X_y=True, as_frame=True)
X = X / X.std()

figure, rows = plt.subplots(2, 3, figsize=(14, 7), layout="constrained")
for choose, (path, choice, atoms) in zip(("alpha", "max_atoms"), rows, strict=True):
    model = ConicRegressorCV(choose=choose).fit(X, y)
    CoefficientPathDisplay.from_estimator(model, ax=path)
    PathChoiceDisplay.from_estimator(model, ax=choice)
    ActiveAtomsDisplay.from_estimator(model, ax=atoms)
plt.show()
