"""The articles of Reuters-21578 that NLTK has for training, from the SGML files.

The articles with LEWISSPLIT="TRAIN" and TOPICS="YES" that are about at least one of the topics that
occur in training and in test. Their text is title and body, without numeric entities; an article
of type BRIEF has a body only if it is "Blah blah blah.", and one of type UNPROC no text. NLTK has
one article fewer, so that the one without text, 11634, is left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from conepursuit.arrays import Array
from conepursuit.datasets.originals import WrongOriginalError, texts

FILLER = "Blah blah blah."
LEFT_OUT = "11634"

_ARTICLE = re.compile(
    r'<REUTERS TOPICS="YES" LEWISSPLIT="(TRAIN|TEST)".*? NEWID="(\d+)">(.*?)</REUTERS>', re.DOTALL
)


class _Article(NamedTuple):
    split: str
    number: str
    topics: frozenset[str]
    content: str


def reuters(paths: Sequence[Path]) -> dict[str, Array]:
    """Count the words of the articles, sorted by their numbers as text."""
    from sklearn.feature_extraction.text import CountVectorizer

    every = [
        _Article(
            split,
            number,
            frozenset(re.findall("<D>(.*?)</D>", _tagged("TOPICS", content))),
            content,
        )
        for text in texts(paths, ".sgm")
        for split, number, content in _ARTICLE.findall(text)
    ]
    seen = [
        {topic for one in every if one.split == split for topic in one.topics}
        for split in ("TRAIN", "TEST")
    ]
    topics = sorted(seen[0] & seen[1])
    if not topics:
        raise WrongOriginalError("there are no articles for training and test in these files")
    articles = sorted(
        (
            one
            for one in every
            if one.split == "TRAIN" and one.number != LEFT_OUT and not one.topics.isdisjoint(topics)
        ),
        key=lambda one: one.number,
    )
    counter = CountVectorizer(stop_words="english")
    counts = counter.fit_transform(_text(one.content) for one in articles)
    counts.sort_indices()
    about = np.array([[topic in one.topics for topic in topics] for one in articles])
    return {
        "data": counts.data.astype(np.uint8),
        "indices": counts.indices.astype(np.uint16),
        "indptr": counts.indptr.astype(np.int32),
        "shape": np.array(counts.shape, dtype=np.int64),
        "ids": np.array([int(one.number) for one in articles], dtype=np.int32),
        "vocabulary": np.array("\n".join(counter.get_feature_names_out()).encode()),
        "topics": np.packbits(about, axis=1),
        "topic_names": np.array(topics),
    }


def _text(content: str) -> str:
    """Return title and body of an article."""
    content = re.sub(r"&#\d+;", "", content)
    kind = re.search(r'<TEXT TYPE="(\w+)">', content)
    if kind is None:
        body = _tagged("BODY", content)
    elif kind[1] == "BRIEF":
        body = FILLER if FILLER in content else ""
    else:
        return ""
    return f"{_tagged('TITLE', content)}\n{body}"


def _tagged(name: str, content: str) -> str:
    """Return what stands between the first two tags of a name, if they are there."""
    found = re.search(f"<{name}>(.*?)</{name}>", content, re.DOTALL)
    return found[1] if found else ""
