"""The digits as sums of ten images, with the objective of every rank on the way."""

from matplotlib import pyplot
from sklearn.datasets import load_digits

from conepursuit import ComponentsDisplay, GreedyNMF, RankPathDisplay, ResidualsDisplay

X = load_digits().data
model = GreedyNMF(10).fit(X)
ComponentsDisplay.from_estimator(model, X, image_shape=(8, 8))
RankPathDisplay.from_estimator(model)
ResidualsDisplay.from_estimator(model, X, image_shape=(8, 8))
pyplot.show()
