"""The HTML report, also as a browser lays it out."""

import html
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from conepursuit.datasets import FILES
from conepursuit.experiments import runner
from conepursuit.experiments.drawing import draw
from conepursuit.experiments.errata import NAMED, POINTS, Point
from conepursuit.experiments.findings import Comparison, Findings, Table
from conepursuit.experiments.report import Missing, Section, page
from conepursuit.plotting import COLOURS

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
LONG = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft"
NASTY = """<script>alert("x")</script> & 'a' < b > c"""
FACTS = {"conepursuit": "0.1.0", "numpy & <scipy>": NASTY, "processor": LONG, LONG: "yes"}


def curves(ax):
    t = np.arange(1, 51)
    for i, colour in enumerate(COLOURS):
        ax.plot(t, np.exp(-0.04 * (i + 1) * t), color=colour, label=f"algorithm {i}")
    ax.plot(t, 1 / t, "k--", label="bound < 1/t & more")
    ax.set(yscale="log", xlabel="iteration t", ylabel="mean f(x$_t$) − f*")
    ax.grid(True, color="0.9")
    ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))


def bars(ax):
    ax.errorbar([0.1, 1, 10], [1, 2, 3], yerr=[0.5, 0.2, 1], fmt="o", capsize=3, label="ours")
    ax.fill_between([0.1, 1, 10], [0, 1, 2], [2, 3, 4], color="0.5", alpha=0.3, label="paper")
    ax.set(xscale="log", xlabel="θ", ylabel="allowed over measured")
    ax.legend()


def histogram(ax):
    ax.hist(np.linspace(0, 1, 20) ** 2, color="white", edgecolor="black", hatch="//")
    ax.set(xlabel="accuracy", ylabel="splits")


def sections():
    wide = Table(
        "A wide table with a long title that needs more than a line on a phone, and then some",
        ["algorithm", *(f"t = {10**i}" for i in range(11))],
        [[name, *["1.234e-05"] * 11] for name in ("NNMP", LONG, "PWMP, affine inv.")],
        "0: below 1e-14 of the start.",
    )
    nasty = Table(NASTY, ["<b>", "a & b"], [["<i>x</i>", "1"], ["y", "−20"]], NASTY)
    findings = [
        Findings(
            [
                Comparison("PWMP converges linearly", "linear", "linear", True),
                Comparison(NASTY, "0.8345 ± 0.0242", "0.8345 ± 0.0240", False, NASTY),
                Comparison(LONG, LONG, LONG, False, LONG),
            ],
            [wide, nasty],
            {"Suboptimality; the dashed line is <the bound>": curves, "Ratios": bars},
        ),
        Findings([], [], {LONG: histogram}),
    ]
    titles = ["The synthetic experiment", f"{LONG} & others"]
    return [
        Section(
            ("synthetic", "a name <with> marks")[i],
            titles[i],
            "Figure 2 & <Section 5>",
            (200.0, 0.4)[i],
            found,
            {caption: draw(plot) for caption, plot in found.figures.items()},
        )
        for i, found in enumerate(findings)
    ]


@pytest.fixture(scope="module")
def report():
    return page(sections(), FACTS)


VOID = {"meta", "link", "br", "img", "hr", "input"}


class Outline(HTMLParser):
    """Reads a page and insists that all elements are closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.texts = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs), tuple(self.open)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs), tuple(self.open)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append((tuple(self.open), data))

    def count(self, tag):
        return sum(found == tag for found, _, _ in self.elements)

    def all(self, tag):
        return [attributes for found, attributes, _ in self.elements if found == tag]

    def text(self, tag):
        return [text for where, text in self.texts if where and where[-1] == tag]


def test_the_page_is_well_formed_and_complete(report):
    outline = Outline(report)
    assert report.startswith("<!DOCTYPE html>")
    assert outline.count("figure") == outline.count("svg") == outline.count("figcaption") == 3
    assert outline.count("table") == 3
    assert outline.count("caption") == 2
    assert outline.count("script") == 0
    assert all(where[-1] == "figure" for tag, _, where in outline.elements if tag == "svg")
    assert all("scope" in attributes for attributes in outline.all("th"))
    assert outline.text("h2")[:2] == ["Summary", "The synthetic experiment"]
    assert outline.text("dd") == list(FACTS.values())
    told = " ".join(text for _, text in outline.texts)
    for words in (
        "Of the 3 claims that were tested, 1 agree",
        "agrees",
        "differs",
        "3 min 20 s",
        "0.4 s",
    ):
        assert words in told


def test_all_text_is_escaped(report):
    outline = Outline(report)
    assert "<script" not in report
    assert "<i>" not in report
    texts = [text for _, text in outline.texts]
    assert texts.count(NASTY) == 5  # a claim, its remark, a title, a note and a fact
    assert "Suboptimality; the dashed line is <the bound>" in outline.text("title")
    assert "bound < 1/t & more" in outline.text("text")


def test_links_and_ids_fit(report):
    outline = Outline(report)
    ids = [a["id"] for _, a, _ in outline.elements if "id" in a]
    assert len(ids) == len(set(ids))
    assert not any(re.search(r"\s", name) for name in ids)
    targets = {a["href"] for _, a, _ in outline.elements if "href" in a}
    targets |= {a["aria-labelledby"] for _, a, _ in outline.elements if "aria-labelledby" in a}
    targets |= set(re.findall(r"url\(([^)]*)\)", report))
    assert {target.removeprefix("#") for target in targets} <= set(ids)
    drawn = {name for name in ids if re.fullmatch(r"f[0-9a-f]{10}-\d+", name)}
    assert len({name.partition("-")[0] for name in drawn}) == 3


def test_nothing_outside_is_needed(report):
    assert "//" not in report
    assert "@import" not in report
    assert "xmlns" not in report


def test_figures_follow_the_page():
    for plot in (curves, bars, histogram):
        svg = draw(plot)
        assert re.match(r'<svg viewBox="0 0 [\d.]+ [\d.]+" width="100%" role="img"', svg)
        colours = set(re.findall(r"(?:fill|stroke): ([^;\"]+)", svg))
        assert not colours & {"#000000", "#ffffff", "black", "white"}
        greys = re.findall(r"(fill|stroke): (#(\w\w)\3\3); \1: color-mix", svg)
        assert len(greys) == len(re.findall(r"#(\w\w)\1\1\b", svg))
    svg = draw(curves)
    for colour in COLOURS[:-1]:
        assert f"stroke: {colour.lower()}" in svg
    assert "stroke-dasharray" in svg
    assert ">iteration t</text>" in svg
    assert "color-mix(in srgb, currentColor 10%, var(--paper, #fff))" in svg  # the grid


def test_the_same_findings_give_the_same_bytes(report):
    import matplotlib

    with matplotlib.rc_context({"font.size": 20, "axes.grid": True, "figure.dpi": 50}):
        assert page(sections(), FACTS) == report


def test_small_reports():
    text = page([Section("a", "b", "c", 59.7, Findings([], []))], {})
    assert Outline(text).count("section") == 3
    assert "1 min 0 s" in text
    assert "No claims were tested" in text
    small = Findings([Comparison("a", "-", "1", True), Comparison("b", "-", "2", None)], [])
    text = page([Section("a", "b", "c", 1, small)], {})
    assert "All 1 claims agree. This run is too small to test 1 more. " in text
    assert '<td class="verdict untested">not tested</td>' in text
    agreed = Findings([Comparison("a", "-", "1", True)] * 2, [])
    text = page([Section("a", "b", "c", 3905, agreed)], {})
    assert "All 2 claims agree. " in text
    assert "1 h 5 min" in text


def words(text):
    return " ".join(" ".join(told for _, told in Outline(text).texts).split())


def test_a_quick_report_says_so_in_its_title_and_at_its_top():
    found = [Section("a", "b", "c", 1.0, Findings([Comparison("a", "-", "1", True)], []))]
    quick, whole = page(found, {}, quick=True), page(found, {})
    assert Outline(quick).text("title") == Outline(quick).text("h1")
    assert Outline(quick).text("h1")[0].endswith("(quick)")
    header = quick[quick.index("<header>") : quick.index("</header>")]
    assert header.index("This is a quick run.") < header.index("claims agree")
    assert "quick" not in whole.partition("</style>")[2]


def test_the_top_says_which_experiments_are_missing_and_what_to_do():
    found = [Section("a", "b", "c", 1.0, Findings([Comparison("a", "-", "1", False)], []))]
    missing = [
        Missing("kl", "The <divergence>", (), (FILES["cbcl_faces"],)),
        Missing("nmf", "Factors", ("x", "y"), (FILES["urban"], FILES["reuters"])),
    ]
    text = page(found, {}, missing=missing, not_run=["theory", "synthetic"])
    told = words(text)
    order = [
        "The <divergence> (kl): data that are not here: cbcl_faces. Get the originals, and run: "
        "conepursuit datasets add cbcl_faces CBCL_Face.mat",
        "Factors (nmf), of it x, y: data that are not here: urban, reuters. Get the "
        "originals, and run: conepursuit datasets add urban HYDICE.mat",
        "Run: conepursuit datasets fetch reuters",
        "theory, synthetic: not run. Run: conepursuit reproduce theory synthetic",
        "Of the 1 claims that were tested, 0 agree and 1 differ",
        "Summary",
    ]
    places = [told.index(words) for words in order]
    assert places == sorted(places)
    assert "missing" not in words(page(found, {}))


def test_errata_are_linked_to_what_they_say():
    table = Table("t", ("a", "b"), [("c", "d")], "Other data (errata D4).")
    claim = Comparison("a", "-", "1", False, "Because (errata B1), and < (errata D3).")
    text = page([Section("a", "b", "c", 1.0, Findings([claim], [table]))], {})
    outline = Outline(text)
    assert [a["href"] for a in outline.all("a") if "erratum" in a["href"]] == [
        "#erratum-B1",
        "#erratum-D3",
        "#erratum-D4",
    ]
    assert [a["id"] for a in outline.all("dt")] == ["erratum-B1", "erratum-D3", "erratum-D4"]
    assert "The garrote table belongs to 207 of the 208 samples" in words(text)
    assert "`" not in text
    assert "errata" not in page([Section("a", "b", "c", 1.0, Findings([], []))], {})


def test_every_erratum_that_experiments_name_is_in_the_errata():
    root = Path(__file__).parents[2]
    page = (root / "docs" / "errata.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([A-E]\d+) \| (.*) \| (.*) \|$", page, re.MULTILINE)
    known = {name: Point(*texts) for name, *texts in rows}
    sources = "".join(path.read_text("utf-8") for path in Path(runner.__file__).parent.glob("*.py"))
    named = set(NAMED.findall(sources))
    assert {"B1", "D1", "D6", "E1"} <= named
    assert {name: known[name] for name in POINTS} == POINTS
    assert named <= set(POINTS)


@pytest.mark.parametrize("name", runner.NAMES)
def test_every_experiment_names_what_it_redoes(name):
    source = runner.experiment(name).source
    assert re.fullmatch(
        r"((Figures?|Tables?|Theorems) [\d, and]+, (Section|Appendix) [\dA-E.]+(; )?)+", source
    )


def test_dark_is_for_screens_only(report):
    assert report.count("color-scheme: dark)") == 1
    assert "@media screen and (prefers-color-scheme: dark)" in report


MEASURE = """
const done = [];
for (const frame of document.querySelectorAll("iframe")) {
  const inside = frame.contentDocument, view = frame.contentWindow;
  const past = [...inside.body.querySelectorAll("*")].filter(element =>
    !element.closest(".scroll *, svg *") && element.getBoundingClientRect().right > view.innerWidth
  );
  const drawn = selector => [...inside.querySelectorAll(selector)].map(element => {
    const box = element.getBoundingClientRect();
    return [box.width, box.height];
  });
  const style = element => view.getComputedStyle(element);
  done.push({
    width: view.innerWidth,
    scrolls: inside.documentElement.scrollWidth,
    past: past.map(element => element.outerHTML.slice(0, 200)),
    figures: drawn("figure svg"),
    texts: drawn("figure svg text"),
    boxes: [...inside.querySelectorAll(".scroll")].map(box => [box.clientWidth, box.scrollWidth]),
    paper: style(inside.body).backgroundColor,
    ink: style(inside.querySelector("figure svg text")).fill,
    black: style(inside.querySelector("figure svg [style*=dasharray]")).stroke,
  });
}
const out = document.createElement("pre");
out.id = "measured";
out.textContent = JSON.stringify(done);
document.body.append(out);
"""


def measured(report, folder, *, dark):
    """Open the page in frames as wide as a phone and as a desktop; windows have a least width."""
    frames = "".join(
        f'<iframe width="{width}" height="800" style="border: 0" srcdoc="{html.escape(report)}">'
        "</iframe>"
        for width in (360, 1280)
    )
    script = f"window.onload = () => {{{MEASURE}}};"
    wrapper = folder / "wrapper.html"
    wrapper.write_text(f"<!DOCTYPE html><body>{frames}<script>{script}</script></body>", "utf-8")
    command = [
        *(CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"),
        f"--user-data-dir={folder / 'profile'}",
        f"--blink-settings=preferredColorScheme={0 if dark else 1}",
        *("--virtual-time-budget=3000", "--dump-dom", wrapper.as_uri()),
    ]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    found = re.search(r'<pre id="measured">(.*?)</pre>', finished.stdout, re.DOTALL)
    assert found, finished.stderr
    return json.loads(html.unescape(found[1]))


def brightness(colour):
    return np.mean([float(part) for part in re.findall(r"[\d.]+", colour)[:3]]) / 255


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
@pytest.mark.parametrize("dark", [False, True])
def test_a_browser_shows_it_on_a_phone_and_on_a_desktop(report, tmp_path, dark):
    phone, desktop = measured(report, tmp_path, dark=dark)
    assert (phone["width"], desktop["width"]) == (360, 1280)
    for view in (phone, desktop):
        assert view["scrolls"] <= view["width"]
        assert view["past"] == []
        assert len(view["figures"]) == 3
        assert all(width > 300 and height > 150 for width, height in view["figures"])
        assert all(width > 0 and height > 0 for width, height in view["texts"])
        for colour in (view["ink"], view["black"]):
            assert abs(brightness(colour) - brightness(view["paper"])) > 0.7
        assert (brightness(view["paper"]) < 0.5) == dark
    summary, wide, _ = phone["boxes"]
    assert summary[1] == summary[0]
    assert wide[1] > wide[0]  # it scrolls inside its own box
