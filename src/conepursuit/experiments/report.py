"""The report of the experiments: one HTML page that needs nothing but itself.

Figures are drawings inside the page. What is black, white or grey in them follows the page, so that
they are right on light and dark screens and in print.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from html import escape
from io import StringIO
from typing import Any
from xml.etree import ElementTree

from conepursuit.experiments.findings import Comparison, Findings, Table
from conepursuit.experiments.report_page import PAGE, STYLE
from conepursuit.plotting import COLOURS

TITLE = "The experiments of the paper, run again"
PAPER = (
    "<cite>Greedy Algorithms for Cone Constrained Optimization with Convergence Guarantees</cite> "
    "by Locatello, Tschannen, Rätsch and Jaggi (NIPS 2017)"
)
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


@dataclass(frozen=True)
class Section:
    """An experiment in the report.

    Attributes
    ----------
    name, title, source : str
        Those of the experiment.
    seconds : float
        How long it took.
    findings : Findings
        What it found.
    figures : mapping of str to str
        The figures as `draw` returns them, by caption; they are put into the page as they are.
    """

    name: str
    title: str
    source: str
    seconds: float
    findings: Findings
    figures: Mapping[str, str] = field(default_factory=dict)

    @property
    def anchor(self) -> str:
        """The id of the section in the page."""
        return "experiment-" + re.sub(r"\W+", "-", self.name)


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


def page(sections: Sequence[Section], facts: Mapping[str, str]) -> str:
    """Return the report.

    Parameters
    ----------
    sections : sequence of Section
        The experiments, in the order of the report.
    facts : mapping of str to str
        Versions, the machine, and what else a reader must know to run it all again.

    Returns
    -------
    str
        An HTML page without scripts that refers to nothing outside itself.
    """
    return PAGE.format(
        title=TITLE,
        style=STYLE,
        opening=_opening([c for s in sections for c in s.findings.comparisons]),
        contents=_contents(sections),
        sections="\n".join([_summary(sections), *map(_section, sections), _facts(facts)]),
    )


def _opening(claims: Sequence[Comparison]) -> str:
    n_agree = sum(claim.agrees for claim in claims)
    if n_agree < len(claims):
        verdict = f"{n_agree} of {len(claims)} claims agree; the summary says why the others do not"
    else:
        verdict = f"All {len(claims)} claims agree" if claims else "No claims were compared"
    return (
        f"<p>The experiments of {PAPER}, run again with conepursuit. {verdict}. Tables and figures "
        "of each experiment stand below the summary.</p>"
    )


def _contents(sections: Sequence[Section]) -> str:
    links = {
        "summary": "Summary",
        **{s.anchor: s.title for s in sections},
        "facts": "Versions and machine",
    }
    items = "\n".join(f'<li><a href="#{i}">{escape(text)}</a></li>' for i, text in links.items())
    return f'<nav aria-label="Contents">\n<ul>\n{items}\n</ul>\n</nav>'


def _summary(sections: Sequence[Section]) -> str:
    groups = "\n".join(_claims(s) for s in sections if s.findings.comparisons)
    return f"""\
<section id="summary">
<h2>Summary</h2>
<div class="scroll" role="region" aria-label="Summary" tabindex="0">
<table class="summary">
<thead>
<tr><th scope="col">Claim</th><th scope="col">Paper</th><th scope="col">Ours</th>\
<th scope="col">Verdict</th></tr>
</thead>
{groups}
</table>
</div>
</section>"""


def _claims(section: Section) -> str:
    """Return the lines of an experiment in the summary."""
    link = f'<a href="#{section.anchor}">{escape(section.title)}</a>'
    rows = [f'<tr><th scope="rowgroup" colspan="4">{link}</th></tr>']
    for claim in section.findings.comparisons:
        verdict = "agrees" if claim.agrees else "differs"
        rows.append(
            f'<tr><th scope="row">{escape(claim.what)}</th><td>{escape(claim.paper)}</td>'
            f"<td>{escape(claim.ours)}</td>"
            f'<td class="verdict {"yes" if claim.agrees else "no"}">{verdict}</td></tr>'
        )
        if claim.remark:
            rows.append(f'<tr class="remark"><td colspan="4">{escape(claim.remark)}</td></tr>')
    return "<tbody>\n" + "\n".join(rows) + "\n</tbody>"


def _section(section: Section) -> str:
    tables = (
        _table(table, f"{section.anchor}-table-{i}")
        for i, table in enumerate(section.findings.tables, 1)
    )
    figures = (_figure(caption, svg) for caption, svg in section.figures.items())
    content = "\n".join([*tables, *figures])
    return f"""\
<section id="{section.anchor}">
<h2>{escape(section.title)}</h2>
<p class="about">In the paper: {escape(section.source)}. \
Time to run it: {_duration(section.seconds)}.</p>
{content}
</section>"""


def _table(table: Table, name: str) -> str:
    """Return a table in a box of its own that scrolls; it can be reached with the keyboard."""
    heads = "".join(f'<th scope="col">{escape(text)}</th>' for text in table.columns)
    rows = []
    for first, *others in table.rows:
        cells = "".join(f"<td>{escape(text)}</td>" for text in others)
        rows.append(f'<tr><th scope="row">{escape(first)}</th>{cells}</tr>')
    note = f'\n<p class="note">{escape(table.note)}</p>' if table.note else ""
    body = "\n".join(rows)
    return f"""\
<div class="table">
<div class="scroll" role="region" aria-labelledby="{name}" tabindex="0">
<table class="data" style="--columns: {len(table.columns)}">
<caption><span id="{name}">{escape(table.title)}</span></caption>
<thead>
<tr>{heads}</tr>
</thead>
<tbody>
{body}
</tbody>
</table>
</div>{note}
</div>"""


def _figure(caption: str, svg: str) -> str:
    text = escape(caption)
    opening, bracket, content = svg.partition(">")
    drawing = f"{opening}{bracket}<title>{text}</title>{content}"
    return f"<figure>\n{drawing}\n<figcaption>{text}</figcaption>\n</figure>"


def _facts(facts: Mapping[str, str]) -> str:
    items = "\n".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in facts.items())
    return f"""\
<section id="facts">
<h2>Versions and machine</h2>
<dl>
{items}
</dl>
</section>"""


def _duration(seconds: float) -> str:
    """Return a time as it is read: 0.4 s, 12 s, 3 min 20 s, 1 h 5 min."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
