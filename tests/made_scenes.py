"""Scenes for the tests of unmixing: made ones, whose endmembers are known, and real ones."""

import os
from functools import cache

import numpy as np
import pytest

from conepursuit.datasets import load_jasper_ridge, load_samson

FOLDER = os.environ.get("CONEPURSUIT_DATA")
needs_data = pytest.mark.skipif(FOLDER is None, reason="CONEPURSUIT_DATA names no data folder")

LOADERS = {"samson": load_samson, "jasper_ridge": load_jasper_ridge}


@cache
def real(name):
    """Return the pixels, endmembers and abundances of a real scene, one spectrum per row."""
    scene = LOADERS[name]()
    return np.ascontiguousarray(scene.Y.T), scene.endmembers.T, scene.abundances.T


def separable(n, *, pixels=60, bands=12, purest=0.8, seed=0):
    """Return a scene without noise, and the rows with its n pure pixels.

    All others are mixtures in which no endmember has more than the share `purest`.
    """
    rng = np.random.default_rng(seed)
    endmembers = rng.random((n, bands)) + 0.1
    shares = rng.dirichlet(np.ones(n), pixels)
    shares = purest * shares + (1.0 - purest) / n
    rows = rng.permutation(pixels + n)
    X = (np.vstack([np.eye(n), shares]) @ endmembers)[rows]
    return X, np.flatnonzero(rows < n)


def generic(seed, *, pixels=40, bands=8):
    """Return random positive pixels, without ties and of full rank."""
    return np.random.default_rng(seed).random((pixels, bands)) + 0.01
