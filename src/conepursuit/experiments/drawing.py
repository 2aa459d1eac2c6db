"""Figures of the report: drawings inside the page, in its colours.

What is black, white or grey in them follows the page, so that they are right on light and dark
screens and in print.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from io import StringIO
from typing import Any
from xml.etree import ElementTree

from conepursuit.plotting import COLOURS

SIZE = (5.6, 3.7)
FONTS = "'DejaVu Sans', Verdana, sans-serif"
"""Formulas are placed glyph by glyph for the first; the second is about as wide."""
RC = {
    "axes.axisbelow": True,
    "axes.prop_cycle": f"cycler('color', {list(COLOURS)})",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "legend.fontsize": 9,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "conepursuit",  # the same figure, the same bytes
}


def draw(plot: Callable[[Any], None]) -> str:
    """Draw a figure.

    Parameters
    ----------
    plot : callable
        Draws on the matplotlib axes that it is given.

    Returns
    -------
    str
        An ``<svg>`` element to be put into an HTML page. It is as wide as it can be, and is drawn
        on ``var(--paper)`` in the colour of the text around it. The same drawing gives the same
        string, and different drawings share no ids.
    """
    try:
        from matplotlib import style
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError('draw needs matplotlib: pip install "conepursuit[plots]".') from None
    out = StringIO()
    with style.context(RC, after_reset=True):
        figure = Figure(figsize=SIZE, layout="constrained")
        plot(figure.add_subplot())
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
    return _inline(out.getvalue())


def _inline(drawing: str) -> str:
    """Return the ``<svg>`` element of a file of matplotlib's, for the inside of a page."""
    prefix = "f" + sha256(drawing.encode()).hexdigest()[:10]
    used = dict.fromkeys(re.findall(r"(?:href=\"|url\()#([\w.-]+)", drawing))
    ids = {old: f"{prefix}-{i}" for i, old in enumerate(used)}
    root = ElementTree.fromstring(drawing)
    for child in [*root]:
        if child.tag.endswith("}metadata") or child.find("{*}style") is not None:
            root.remove(child)
    for element in root.iter():
        element.tag = _local(element.tag)
        element.tail = None
        if len(element):
            element.text = None
        attributes = {_local(key): " ".join(v.split()) for key, v in element.attrib.items()}
        element.attrib = dict(_attributes(attributes, ids))
    root.attrib = {
        "viewBox": root.attrib["viewBox"],
        "width": "100%",
        "role": "img",
        "fill": "currentColor",  # what matplotlib leaves without a colour is black
        "stroke-linejoin": "round",
        "font-family": FONTS,
    }
    return ElementTree.tostring(root, encoding="unicode")


def _local(name: str) -> str:
    """Return a name without its namespace; inside HTML there are none."""
    return name.rpartition("}")[2]


def _attributes(given: Mapping[str, str], ids: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the attributes of an element: ids renamed or left out, numbers short, greys mixed."""
    for key, value in given.items():
        if key == "fill":  # the ground of a hatch; only a style may refer to the page's colours
            key, value = "style", f"fill: {value}"
        if key == "id":
            if value in ids:
                yield key, ids[value]
        elif key == "style":
            value = re.sub(r"'DejaVu Sans'[^;]*", FONTS, value)
            value = re.sub(r"(fill|stroke): #(\w\w)\2\2(?!\w)", _mixed, value)
            yield key, _renamed(value, ids)
        elif key in ("href", "clip-path"):
            yield key, _renamed(value, ids)
        elif key in ("d", "x", "y"):
            yield key, re.sub(r"-?\d+\.\d+", lambda m: f"{round(float(m[0]), 2):g}", value)
        else:
            yield key, value


def _renamed(value: str, ids: Mapping[str, str]) -> str:
    return re.sub(r"(?<=#)[\w.-]+", lambda match: ids.get(match[0], match[0]), value)


def _mixed(match: re.Match[str]) -> str:
    """Return a grey as a mixture of the colours of text and page, after the grey itself.

    Browsers that cannot mix keep the first.
    """
    name, level = match[1], match[2]
    ink = round(100 * (1 - int(level, 16) / 255))
    if ink == 100:
        return f"{name}: currentColor"
    if ink == 0:
        return f"{name}: var(--paper, #fff)"
    mixture = f"color-mix(in srgb, currentColor {ink}%, var(--paper, #fff))"
    return f"{name}: #{level * 3}; {name}: {mixture}"
