"""The report of the experiments: one HTML page that needs nothing but itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from conepursuit.datasets import File
from conepursuit.experiments.errata import NAMED, Point, named_points
from conepursuit.experiments.findings import Findings, Table
from conepursuit.experiments.report_page import PAGE, STYLE

TITLE = "The experiments of the paper, run again"
PAPER = (
    "<cite>Greedy Algorithms for Cone Constrained Optimization with Convergence Guarantees</cite> "
    "by Locatello, Tschannen, Rätsch and Jaggi (NIPS 2017)"
)


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


@dataclass(frozen=True)
class Missing:
    """An experiment that could not be run, or not all of it, for lack of data.

    Attributes
    ----------
    name, title : str
        Those of the experiment.
    parts : sequence of str
        The parts that are missing; none where all of it is.
    files : sequence of File
        The data that are missing.
    """

    name: str
    title: str
    parts: Sequence[str]
    files: Sequence[File]

    @property
    def told(self) -> str:
        """What is missing and why, in a sentence."""
        parts = f", of it {', '.join(self.parts)}" if self.parts else ""
        data = ", ".join(file.name for file in self.files)
        return f"{self.title} ({self.name}){parts}: data that are not here: {data}."


def page(
    sections: Sequence[Section],
    facts: Mapping[str, str],
    *,
    quick: bool = False,
    missing: Sequence[Missing] = (),
    not_run: Sequence[str] = (),
) -> str:
    """Return the report.

    Parameters
    ----------
    sections : sequence of Section
        The experiments, in the order of the report.
    facts : mapping of str to str
        Versions, the machine, and what else a reader must know to run it all again.
    quick : bool
        Whether they were run on a small budget, which title and opening then say.
    missing : sequence of Missing
        The experiments whose data are missing.
    not_run : sequence of str
        The names of experiments that nobody asked for.

    Returns
    -------
    str
        An HTML page without scripts that refers to nothing outside itself.
    """
    points = named_points(text for section in sections for text in named_texts(section.findings))
    opening = [_quick(), _missing(missing, not_run), _opening(sections)]
    parts = [_summary(sections), *map(_section, sections), _errata(points), _facts(facts)]
    return PAGE.format(
        title=f"{TITLE} (quick)" if quick else TITLE,
        style=STYLE,
        opening="\n".join(filter(None, opening[0 if quick else 1 :])),
        contents=_contents(sections, points),
        sections="\n".join(filter(None, parts)),
    )


def _quick() -> str:
    return (
        '<p class="notice"><strong>This is a quick run.</strong> Every experiment has a small '
        "budget: fewer problems, splits and starts, fewer iterations, lower ranks, parts of the "
        "data. A claim may differ for that reason alone, and no number should be quoted. "
        "<code>conepursuit reproduce</code> runs them all as they are in the paper.</p>"
    )


def _missing(missing: Sequence[Missing], not_run: Sequence[str]) -> str:
    """Return which experiments are missing, why, and what to do."""
    items = [
        f"<li>{escape(one.told)} "
        + " ".join(
            f"{escape(words)} <code>{escape(command)}</code>" for words, command in _ways(one)
        )
        + "</li>"
        for one in missing
    ]
    if not_run:
        items.append(
            f"<li>{escape(', '.join(not_run))}: not run. Run: "
            f"<code>conepursuit reproduce {escape(' '.join(not_run))}</code></li>"
        )
    if not items:
        return ""
    return (
        '<div class="notice"><p><strong>Experiments that are missing:</strong></p>\n<ul>\n'
        + "\n".join(items)
        + "\n</ul></div>"
    )


def _ways(missing: Missing) -> Iterator[tuple[str, str]]:
    """Yield how to get the data that are missing: words, and the command that follows them."""
    for file in missing.files:
        words, _, command = file.advice.partition(": ")
        yield f"{words}:", command


def _opening(sections: Sequence[Section]) -> str:
    claims = [claim for section in sections for claim in section.findings.comparisons]
    tested = [claim for claim in claims if claim.agrees is not None]
    n_agree, n_untested = sum(bool(claim.agrees) for claim in tested), len(claims) - len(tested)
    if n_agree < len(tested):
        verdict = f"Of the {len(tested)} claims that were tested, {n_agree} agree and "
        verdict += f"{len(tested) - n_agree} differ; the summary says why"
    else:
        verdict = f"All {len(tested)} claims agree" if tested else "No claims were tested"
    verdict += f". This run is too small to test {n_untested} more" if n_untested else ""
    return (
        f"<p>The experiments of {PAPER}, run again with conepursuit. {verdict}. Tables and figures "
        "of each experiment stand below the summary.</p>"
    )


def named_texts(findings: Findings) -> Iterator[str]:
    """Yield the texts of findings that may name points of the errata."""
    for claim in findings.comparisons:
        yield claim.remark
    for table in findings.tables:
        yield table.note


def _linked(text: str) -> str:
    """Return a text as HTML, with links to the points of the errata that it names."""
    return NAMED.sub(r'<a href="#erratum-\1">errata \1</a>', escape(text))


def _contents(sections: Sequence[Section], points: Mapping[str, Point]) -> str:
    links = {
        "summary": "Summary",
        **{s.anchor: s.title for s in sections},
        **({"errata": "Errata"} if points else {}),
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
    link = f'<a href="#{section.anchor}">{escape(section.title)}</a>, {escape(section.source)}'
    rows = [f'<tr><th scope="rowgroup" colspan="4">{link}</th></tr>']
    for claim in section.findings.comparisons:
        kind = {"agrees": "yes", "differs": "no", "not tested": "untested"}[claim.verdict]
        rows.append(
            f'<tr><th scope="row">{escape(claim.what)}</th><td>{escape(claim.paper)}</td>'
            f"<td>{escape(claim.ours)}</td>"
            f'<td class="verdict {kind}">{claim.verdict}</td></tr>'
        )
        if claim.remark:
            rows.append(f'<tr class="remark"><td colspan="4">{_linked(claim.remark)}</td></tr>')
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
    note = f'\n<p class="note">{_linked(table.note)}</p>' if table.note else ""
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


def _errata(points: Mapping[str, Point]) -> str:
    """Return the points that the experiments name."""
    if not points:
        return ""
    items = "\n".join(
        f'<dt id="erratum-{name}">{name}</dt><dd>{_code(point.point)} {_code(point.done)}</dd>'
        for name, point in points.items()
    )
    return f"""\
<section id="errata">
<h2>Errata</h2>
<p class="about">Where the paper is silent or wrong, and what is done: the points that are named \
above. All of them are in docs/errata.md of conepursuit.</p>
<dl>
{items}
</dl>
</section>"""


def _code(text: str) -> str:
    return re.sub("`([^`]*)`", r"<code>\1</code>", escape(text))


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
