"""Data that count: words in articles, mutations in tumours."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from conepursuit.arrays import Array
from conepursuit.datasets.files import stored
from conepursuit.datasets.records import DataSet
from conepursuit.datasets.registry import FILES


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Reuters(DataSet):
    """How often each of 26,001 words occurs in each of 7,769 articles of Reuters-21578.

    A reconstruction of the training articles that NLTK has, in its order. It agrees with them in
    the number of articles and of words; one empty article, 11634, was left out to that end.

    Attributes
    ----------
    X : csr_array of shape (7769, 26001)
        The counts as float64, articles as rows; 433,413 are not zero.
    vocabulary : array of str of shape (26001,)
        The words, English stop words left out.
    ids : array of int of shape (7769,)
        The numbers of the articles.
    topics : array of bool of shape (7769, 90)
        Which article is about which topic; every article has at least one.
    topic_names : array of str of shape (90,)
        What the topics are called.
    """

    X: Any
    vocabulary: Array
    ids: Array
    topics: Array
    topic_names: Array


def load_reuters(*, folder: str | os.PathLike[str] | None = None) -> Reuters:
    """Load the counts of words in the articles of Reuters-21578.

    Parameters
    ----------
    folder : path, optional
        Where to look first, see `find`.

    Returns
    -------
    Reuters
        With attributes X, vocabulary, ids, topics and topic_names.
    """
    z = stored("reuters", folder)
    data, indices = z["data"].astype(np.float64), z["indices"].astype(np.int32)
    names = z["topic_names"]
    return Reuters(
        source=FILES["reuters"],
        X=sparse.csr_array((data, indices, z["indptr"]), shape=tuple(z["shape"])),
        vocabulary=np.array(z["vocabulary"].item().decode().split("\n")),
        ids=z["ids"],
        topics=np.unpackbits(z["topics"], axis=1, count=len(names)).astype(bool),
        topic_names=names,
    )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MutationalSignatures(DataSet):
    """Signatures of mutational processes, and catalogues of the mutations of tumours.

    A catalogue counts the single-base substitutions of one tumour by their kind and their two
    neighbours, in 96 channels. It is explained as a non-negative combination of signatures.
    Exposures, the weights of such a combination, are not part of the data.

    Attributes
    ----------
    channels : array of str of shape (96,)
        As ``A[C>T]G``.
    signatures : array of shape (96, 86)
        COSMIC v3.4; the columns sum to 1 within 5e-7.
    signature_names : array of str of shape (86,)
        From SBS1 on.
    catalogues : array of shape (96, 2780)
        The counts of PCAWG as float64, tumours as columns, from 21 to 2.4 million in all.
    tumour_types, tumour_ids : array of str of shape (2780,)
        What the tumours are.
    breast_catalogues : array of shape (96, 21)
        The counts of 21 breast cancers.
    """

    channels: Array
    signatures: Array
    signature_names: Array
    catalogues: Array
    tumour_types: Array
    tumour_ids: Array
    breast_catalogues: Array


def load_mutational_signatures(
    *, folder: str | os.PathLike[str] | None = None
) -> MutationalSignatures:
    """Load the COSMIC signatures and catalogues of tumours to explain by them.

    Parameters
    ----------
    folder : path, optional
        Where to look first, see `find`.

    Returns
    -------
    MutationalSignatures
        With attributes channels, signatures, signature_names, catalogues, tumour_types, tumour_ids
        and breast_catalogues.
    """
    z = stored("mutational_signatures", folder)
    return MutationalSignatures(
        source=FILES["mutational_signatures"],
        channels=z["channels"],
        signatures=z["cosmic_v3_4"],
        signature_names=z["cosmic_names"],
        catalogues=z["pcawg_counts"].astype(np.float64),
        tumour_types=z["pcawg_type"],
        tumour_ids=z["pcawg_id"],
        breast_catalogues=z["breast21_counts"].astype(np.float64),
    )
