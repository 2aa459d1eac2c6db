"""The figures of docs/theory.md: atoms in the plane, and the sets that the theory speaks of.

`python examples/plot_theory.py docs/figures` writes them there; without a folder they are shown.
"""

import re
import sys
from io import StringIO
from itertools import islice, pairwise
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Arc, Circle, Polygon, Wedge
from scipy.spatial import ConvexHull

from conepursuit import PWMP, Cone, Dictionary, LeastSquares, iterates
from conepursuit.plotting import COLOURS
from conepursuit.theory import cone_width, generating_faces, pyramidal_width

BLUE, ORANGE, GREEN, *_ = COLOURS
HULL, CONE, SPAN, DESCENT, GREY = "#B8D8EA", "#DCECF5", "#F3F3F3", "#F5C6A0", "0.4"
ORIGIN = np.zeros(2)
FAR = 20.0  # where rays end: beyond the border of every panel


def panels(size, *limits, **options):
    """Return a figure and axes, without frames and with round circles where limits are given."""
    figure, axes = plt.subplots(1, len(limits), figsize=size, squeeze=False, **options)
    figure.subplots_adjust(0.01, 0.02, 0.99, 0.84, wspace=0.05)
    for ax, box in zip(axes[0], limits, strict=True):
        if box:
            ax.set(xlim=box[:2], ylim=box[2:], xticks=[], yticks=[], aspect="equal", anchor="N")
            ax.spines[:].set_visible(False)
    return figure, axes[0]


def fill(ax, corners, colour, edge="none"):
    return ax.add_patch(Polygon(corners, fc=colour, ec=edge, lw=0.8, zorder=0))


def circle(ax, centre, radius, **style):
    return ax.add_patch(Circle(centre, radius, **{"fc": "none", "lw": 1.2, "zorder": 1} | style))


def line(ax, *points, **style):
    ax.plot(*np.transpose(points), **{"color": GREY, "lw": 1.0, "zorder": 2} | style)


def dots(ax, *points, colour="black", size=5, **style):
    ax.plot(*np.transpose(points), "o", color=colour, ms=size, zorder=5, **style)


def arrow(ax, start, end, colour="black", **style):
    style = {"arrowstyle": "-|>", "color": colour, "shrinkA": 0, "shrinkB": 0, "lw": 1.3} | style
    ax.annotate("", end, start, arrowprops=style, zorder=4)


def say(ax, place, text, colour="black", shift=(0, 0), **style):
    """Write at a place, shifted by so many points."""
    style = {"color": colour, "ha": "center", "va": "center"} | style
    ax.annotate(text, place, shift, textcoords="offset points", zorder=6, **style)


def head(ax, title, below):
    ax.set_title(title, fontsize=10.5, pad=20)
    style = {"xycoords": "axes fraction", "textcoords": "offset points", "ha": "center"}
    ax.annotate(below, (0.5, 1), (0, 7), color=GREY, fontsize=8.5, **style)


def save(figure, path):
    """Write an SVG, the same bytes each time, readable without DejaVu Sans too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = StringIO()
    figure.savefig(text, format="svg", bbox_inches="tight", metadata={"Date": None})
    # Formulas name a single font; Verdana's letters are about as wide.
    svg = re.sub(r"'DejaVu Sans'(?=[;\"])", "'DejaVu Sans', Verdana, sans-serif", text.getvalue())
    path.write_text(svg, encoding="utf-8")


def cone():
    """The hull, the cone and the span of three atoms, with the faces that hold the origin."""
    atoms = np.array([[1.0, 0.25], [0.75, 0.7], [0.3, 0.95]])
    rays = [atoms[face[0]] for face in generating_faces(atoms.T) if len(face) == 1]
    figure, axes = panels((7.2, 2.8), *[(-0.3, 1.4, -0.25, 1.35)] * 3)
    axes[2].set_facecolor(SPAN)
    for ax, length in zip(axes, (1, FAR, 0), strict=True):
        if ax is not axes[0]:
            fill(ax, [ORIGIN, *(FAR * ray for ray in rays)], CONE)
        fill(ax, [ORIGIN, *atoms], HULL)
        line(ax, *atoms, color=BLUE)
        for ray in rays if length else ():  # the span has no face but itself
            line(ax, ORIGIN, length * ray, color=ORANGE, lw=3)
        dots(ax, ORIGIN, colour=ORANGE if length else "black", size=7 if length else 5)
        dots(ax, *atoms)
        say(ax, ORIGIN, "0", shift=(-9, -5))
        for i, shift in enumerate([(7, -10), (11, 6), (-10, 6)]):
            say(ax, atoms[i], f"$a_{i + 1}$", shift=shift)
    say(axes[0], (0.5, 0.5), "all of it\nis one, too", ORANGE, fontsize=8)
    say(axes[0], (0.5, 0.125), "g-faces", ORANGE, shift=(4, -12))
    say(axes[0], (0.95, 1.07), "outer edges:\nno g-faces", BLUE, fontsize=8)
    say(axes[1], (0.5, 0.125), "its faces", ORANGE, shift=(4, -12))
    say(axes[2], (0.5, 0.125), "one face: all of it", ORANGE, shift=(30, -20))
    head(axes[0], "conv(A ∪ {0})", "weights ≥ 0 that sum to ≤ 1")
    head(axes[1], "cone(A)", "weights ≥ 0")
    head(axes[2], "lin(A)", "weights of any sign: the plane")
    return figure


def descent():
    """The gradients along which NNMP can descend, at three points: Figure 1 of the paper."""
    angles = np.radians([12, 68])
    atoms = np.transpose([np.cos(angles), np.sin(angles)])
    figure, axes = panels((7.2, 2.9), *[(-1.0, 2.3, -0.95, 1.85)] * 3)
    weights = np.array([[0, 0], [1.15, 0], [0.65, 0.65]])
    for i, (ax, x) in enumerate(zip(axes, weights @ atoms, strict=True)):
        region = fill(ax, [ORIGIN, *(FAR * atoms)], CONE)
        shaded = circle(ax, x, 0.9, fc=DESCENT, ec=GREY, lw=0.8)
        say(ax, x, f"$T_A(x_{i})$", shift=(4, -20))
        for j, atom in enumerate(atoms):
            arrow(ax, x, x + 0.9 * atom, BLUE)
            say(ax, x + 0.9 * atom, f"$a_{j + 1}$", BLUE, shift=9 * atom)
        if i:
            arrow(ax, x, x - 0.9 * x / weights[i].sum(), BLUE)
            say(ax, ORIGIN, rf"$-x_{i}/\|x_{i}\|_A$", BLUE, shift=(-9, -10), fontsize=8)
        dots(ax, x, mec="black", colour="white" if i == 2 else "black", size=6)
    # <d, a_1> >= 0 and <d, a_2> >= 0 leave the dual cone; -a_1 leaves one ray of it.
    white = axes[0].add_patch(Wedge(ORIGIN, 0.9, 68 - 90, 12 + 90, fc="white", ec=GREY, lw=0.8))
    x, ray = 1.15 * atoms[0], 0.9 * np.array([-atoms[0, 1], atoms[0, 0]])
    for colour, width in ((GREY, 5.5), ("white", 4)):
        line(axes[1], x, x + ray, color=colour, lw=width, solid_capstyle="butt")
    say(axes[1], x + ray, "only here x₁ is optimal", shift=(-40, 10), fontsize=8)
    head(axes[0], "x₀ = 0", "optimal for a cone of d")
    head(axes[1], "x₁ on the ray of a₁", "optimal for one ray of d")
    head(axes[2], "x₂ inside the cone", "optimal for d = 0 only")
    names = ["gradients d along which NNMP can descend", "other d: x is optimal", "cone(A)"]
    figure.legend([shaded, white, region], names, loc="lower center", ncols=3, frameon=False)
    return figure


def theta_set(theta):
    half = np.array([[1.0, np.cos(theta)], [0.0, np.sin(theta)]])
    return np.hstack([half, -half])


def theta():
    """Two lines at an angle theta: the cone width is sin(theta / 2)."""
    box = (-1.2, 1.2, -0.76, 0.72)
    figure, (left, right) = panels((7.2, 3.0), box, None, width_ratios=[1.3, 1])
    figure.subplots_adjust(bottom=0.15, wspace=0.12)
    A = theta_set(0.6)
    width = cone_width(A)
    touching = width * width.direction
    fill(left, A.T, HULL, BLUE)
    circle(left, ORIGIN, width, ec=ORANGE)
    left.add_patch(Arc(ORIGIN, 1.1, 1.1, theta2=np.degrees(0.6), color=GREY))
    for atom in A.T[:2]:
        line(left, -atom, atom, ls=":")
    arrow(left, ORIGIN, touching, ORANGE)
    dots(left, touching, -touching, colour=ORANGE, size=4)
    dots(left, ORIGIN, *A.T)
    say(left, 0.64 * np.array([np.cos(0.3), np.sin(0.3)]), "θ", GREY)
    say(left, A[:, 0], "(1, 0)", shift=(6, -11))
    say(left, A[:, 1], "(cos θ, sin θ)", shift=(-2, 11))
    say(left, touching, "r", ORANGE, shift=(-3, 9), style="italic")
    say(left, -touching, f"radius {width:.3f} = sin(θ/2)", ORANGE, shift=(48, -22))
    head(left, "θ = 0.6", "the circle about 0 touches two edges")
    angles, some = np.linspace(0, np.pi / 2, 60), np.linspace(0, np.pi / 2, 14)[1:-1]
    right.plot(angles, np.sin(angles / 2), color=ORANGE, label="sin(θ/2)")
    computed = [cone_width(theta_set(angle)) for angle in some]
    right.plot(some, computed, "o", color=BLUE, ms=5, label="computed")
    right.set(xlim=(0, np.pi / 2), ylim=(0, 0.75), xlabel="θ", yticks=[0, 0.25, 0.5, 0.75])
    right.set_xticks([0, np.pi / 4, np.pi / 2], ["0", "π/4", "π/2"])
    right.spines[["top", "right"]].set_visible(False)
    right.legend(frameon=False)
    head(right, "cone width", "small where atoms nearly agree")
    return figure


def bad_step():
    """A pairwise step that ends where the weight of v does."""
    atoms, y = np.array([[1.5, 0.15], [0.56, 0.42], [0.27, 0.37]]), np.array([0.6, 1.9])
    states = list(islice(iterates(LeastSquares(y), Cone(Dictionary(atoms.T)), PWMP()), 9))
    bad = next(i for i, state in enumerate(states) if not state.good)  # where a bad step led to
    *path, (x, after) = pairwise(state.iterate.x for state in states[: bad + 1])
    before, way = states[bad - 1].iterate, states[bad - 1].direction
    v, z = atoms[before.atoms.keys[way.away]], atoms[way.toward.keys[0]]
    weight, wanted = before.weights[way.away], -way.slope / ((z - v) @ (z - v))
    rest, end = x - weight * v, x + wanted * (z - v)

    figure, (ax,) = panels((7.2, 6.0), (-0.35, 2.15, -0.12, 2.02))
    fill(ax, [ORIGIN, FAR * v, FAR * z], CONE)
    for point in (x, after, end):
        circle(ax, y, np.linalg.norm(point - y), ec=GREEN, lw=0.8)
    for start, stop in path:
        arrow(ax, start, stop, GREY, lw=0.9)
    for atom in atoms:
        arrow(ax, ORIGIN, atom, BLUE)
    line(ax, ORIGIN, rest, x, ls=":", lw=1.4)
    line(ax, rest, after, ls=":", lw=1.4)
    line(ax, after, end, color=ORANGE, ls="--", lw=1.6)
    arrow(ax, x, after, ORANGE, lw=2.2)
    dots(ax, ORIGIN, x, after, y)
    dots(ax, path[-1][0], rest, colour=GREY, size=3)
    dots(ax, end, colour=ORANGE, mfc="white", size=6)
    say(ax, ORIGIN, "0", shift=(-7, -7))
    say(ax, v, "$v_t$", BLUE, (4, -10), fontsize=11)
    say(ax, z, "$z_t$", BLUE, (-17, -8), fontsize=11)
    say(ax, atoms[1], "$u$", BLUE, (4, -10), fontsize=11)
    say(ax, x, "$x_t$", shift=(14, 1), fontsize=11)
    say(ax, after, "$x_{t+1}$", shift=(17, -14), fontsize=11)
    say(ax, y, "$y$", shift=(11, 4), fontsize=11)
    say(ax, end, f"the step wanted: {wanted:.2f}\n(f is least there)", ORANGE, (-10, 26))
    say(ax, (x + after) / 2, f"clipped at {weight:.2f}:\nno vₜ is left", ORANGE, (38, 25))
    say(ax, (x + rest) / 2, f"{weight:.2f} vₜ", GREY, (0, -9))
    say(ax, (after + rest) / 2, f"{weight:.2f} zₜ", GREY, (-20, 3))
    say(ax, rest, f"{before.weights[1 - way.away]:.2f} u", GREY, (20, -12))
    say(ax, (path[-1][0] + x) / 2, "earlier steps", GREY, (38, -10))
    say(ax, y, "circles: f is level", GREEN, (0, -22))
    say(ax, (1.95, 0.42), "cone(A)", BLUE)
    return figure


def readings():
    """A short edge makes the literal cone width tiny; the reading of the proofs ignores it."""
    atoms = np.array([[1, 0], [0.95, 0.055], [0, 1], [-1, 0], [0, -0.9]])
    literal, width = pyramidal_width(atoms.T), cone_width(atoms.T)
    wide, box = (-1.08, 2.97, -1.0, 1.08), (-1.08, 1.12, -1.0, 1.08)
    figure, (left, right) = panels((7.2, 2.9), wide, box, width_ratios=[4.05, 2.2])
    zoom = left.inset_axes([1.25, -0.86, 1.72, 1.72], transform=left.transData)
    zoom.set(xlim=(0.938, 1.006), ylim=(-0.006, 0.062), xticks=[], yticks=[])
    left.indicate_inset_zoom(zoom, edgecolor=GREY)
    for ax, size in ((left, 3), (zoom, 5), (right, 4)):
        fill(ax, atoms[ConvexHull(atoms).vertices], HULL, BLUE)
        dots(ax, ORIGIN, *atoms, size=size)
    corner = atoms[literal.face[0]]
    foot = corner - literal * literal.direction
    line(zoom, atoms[0], atoms[2], color=BLUE, ls="--")
    line(zoom, corner, foot, color=ORANGE, lw=2.5)
    say(zoom, corner, f"{literal:.6f}", ORANGE, (15, -13), ha="left")
    say(zoom, corner, "(0.95, 0.055)", shift=(8, 2), ha="left")
    say(zoom, atoms[0], "(1, 0)", shift=(-20, 0))
    say(zoom, (0.962, 0.02), "the hull of\nthe others", BLUE)
    say(left, ORIGIN, "0", shift=(-8, 0))
    head(left, "to the letter: pyramidal width", "how far a corner is from the hull of the others")
    circle(right, ORIGIN, width, ec=ORANGE)
    arrow(right, ORIGIN, width * width.direction, ORANGE)
    say(right, (0, 0.2), f"{width:.6f}", ORANGE)
    say(right, ORIGIN, "0", shift=(-8, 0))
    head(right, "as the proofs read it", "how far 0 is from the nearest edge")
    return figure


if __name__ == "__main__":
    plt.rcParams |= {"svg.hashsalt": "conepursuit", "svg.fonttype": "none", "font.size": 9}
    for draw in (cone, descent, theta, bad_step, readings):
        figure = draw()
        if sys.argv[1:]:
            save(figure, Path(sys.argv[1]) / f"{draw.__name__}.svg")
    if not sys.argv[1:]:
        plt.show()
