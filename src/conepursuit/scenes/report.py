"""The report of a run: one HTML page that needs nothing but itself."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from conepursuit.experiments.report_page import PAGE, STYLE

OWN_STYLE = """
.numbers {
  display: grid; grid-template-columns: repeat(auto-fit, minmax(10rem, 1fr)); gap: .8rem;
  max-width: none; margin: 1.6rem 0 0;
}
.numbers div { padding: .7rem 1rem; border-radius: .4rem; background: var(--shade); }
.numbers dd { font-size: 1.45rem; line-height: 1.25; white-space: nowrap; }
header + nav { margin-top: 1.4rem; }
.maps {
  display: grid; grid-template-columns: repeat(auto-fill, minmax(17rem, 1fr)); gap: 1.2rem;
  margin-top: 1.4rem;
}
.maps figure { margin: 0; }
.maps img { display: block; width: 100%; height: auto; padding: .3rem; background: #fff; }
@media screen and (prefers-color-scheme: dark) { .maps img { border-radius: .4rem; } }
.maps figcaption { margin-top: .2rem; color: var(--soft); font-size: .88rem; }
.maps figcaption::before { counter-increment: none; content: none; }
h3 { margin: 1.6rem 0 0; font-size: 1.05rem; }
section > p { margin: .5rem 0 0; }
@media (max-width: 40rem) {
  .numbers { grid-template-columns: 1fr 1fr; gap: .5rem; }
  .numbers div { padding: .5rem .7rem; }
  .numbers div:last-child:nth-child(odd) { grid-column: 1 / -1; }
  .numbers dd { font-size: 1.2rem; }
  .maps { grid-template-columns: 1fr; }
}
@media print { .maps { grid-template-columns: repeat(3, 1fr); } .maps figure { margin: 0; } }
"""


@dataclass(frozen=True)
class Picture:
    """A map in the report.

    Attributes
    ----------
    name : str
        What it shows.
    png : bytes
        The picture.
    caption : str
        What stands below it.
    """

    name: str
    png: bytes
    caption: str


@dataclass(frozen=True, kw_only=True)
class Contents:
    """What the report of a run shows.

    Attributes
    ----------
    title, opening : str
        The heading, and what was done in a few sentences.
    numbers : mapping of str to str
        What is shown first, in large letters.
    spectra, residuals : str
        Drawings of the endmembers and of a histogram of residuals, as
        `conepursuit.experiments.report.draw` returns them.
    spectra_caption, residuals_caption : str
        What stands below them.
    abundances : sequence of Picture
        The maps of the abundances.
    abundances_note : str
        How they are to be read.
    quality : sequence of Picture
        The maps of residuals and gaps.
    facts : mapping of str to mapping
        Settings and timings: headings, and names with their values below each.
    """

    title: str
    opening: str
    numbers: Mapping[str, str]
    spectra: str
    spectra_caption: str
    abundances: Sequence[Picture]
    abundances_note: str
    residuals: str
    residuals_caption: str
    quality: Sequence[Picture]
    facts: Mapping[str, Mapping[str, str]]


def page(contents: Contents) -> str:
    """Return the report: HTML without scripts that refers to nothing outside itself."""
    sections = {
        "endmembers": (
            "Endmembers",
            _drawing(contents.spectra, contents.spectra_caption),
        ),
        "abundances": (
            "Abundances",
            _paragraph(contents.abundances_note) + _maps(contents.abundances),
        ),
        "fit": (
            "How good the fit is",
            _maps(contents.quality) + _drawing(contents.residuals, contents.residuals_caption),
        ),
        "facts": (
            "Settings and timings",
            "\n".join(_facts(name, facts) for name, facts in contents.facts.items()),
        ),
    }
    links = "".join(f'<li><a href="#{i}">{text}</a></li>' for i, (text, _) in sections.items())
    return PAGE.format(
        title=escape(contents.title),
        style=STYLE + OWN_STYLE,
        opening=_paragraph(contents.opening) + _numbers(contents.numbers),
        contents=f'<nav aria-label="Contents"><ul>{links}</ul></nav>',
        sections="\n".join(
            f'<section id="{i}">\n<h2>{heading}</h2>\n{body}\n</section>'
            for i, (heading, body) in sections.items()
        ),
    )


def _paragraph(text: str) -> str:
    return f"<p>{escape(text)}</p>\n"


def _numbers(numbers: Mapping[str, str]) -> str:
    items = (
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>"
        for name, value in numbers.items()
    )
    return f'<dl class="numbers">{"".join(items)}</dl>'


def _drawing(svg: str, caption: str) -> str:
    opening, bracket, content = svg.partition(">")
    drawing = f"{opening}{bracket}<title>{escape(caption)}</title>{content}"
    return f"<figure>\n{drawing}\n<figcaption>{escape(caption)}</figcaption>\n</figure>"


def _maps(pictures: Sequence[Picture]) -> str:
    figures = (
        f'<figure><img alt="Map: {escape(p.name)}" '
        f'src="data:image/png;base64,{b64encode(p.png).decode()}">'
        f"<figcaption>{escape(p.caption)}</figcaption></figure>"
        for p in pictures
    )
    joined = "\n".join(figures)
    return f'<div class="maps">\n{joined}\n</div>'


def _facts(heading: str, facts: Mapping[str, str]) -> str:
    items = "\n".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in facts.items())
    return f"<h3>{escape(heading)}</h3>\n<dl>\n{items}\n</dl>"
