"""Maps as .png pictures with a scale, and drawings of spectra and residuals for the report."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import Any

import numpy as np

from conepursuit.arrays import Array, Vector
from conepursuit.plotting import COLOURS, LINES

MISSING = "#d9d9d9"
"""The colour of pixels without data."""

MOST_PICTURES = 24
"""The most endmembers of which maps are drawn: those with the largest mean abundance."""

WIDTH, MAP, RESOLUTION = 4.2, 0.78, 130
"""The width of a picture in inches, the share of it for the map, and points per inch."""


def shown(mean: Vector) -> list[int]:
    """Return the endmembers that are drawn, in their order."""
    return sorted(np.argsort(-mean, kind="stable")[:MOST_PICTURES].tolist())


def picture(
    values: Array, title: str, *, colours: str, top: float, logarithmic: bool = False
) -> bytes:
    """Return a map as a .png picture with a scale.

    Parameters
    ----------
    values : array of shape (rows, columns)
        The map; NaN and infinity are drawn in grey.
    title : str
        What stands above it.
    colours : str
        The name of a colour map of matplotlib's.
    top : float
        The end of the scale, which begins at 0.
    logarithmic : bool
        Whether the scale is logarithmic, from above 1 % of the positive numbers; if these span
        more than two decades.
    """
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    rows, columns = values.shape
    wide, tall = WIDTH * MAP, WIDTH * MAP * float(np.clip(rows / columns, 0.25, 2.0))
    height = tall + 0.45  # below a title of a third of an inch
    figure = Figure(figsize=(WIDTH, height))
    # Places are given, since a layout that is computed takes longer than all the rest.
    axes = figure.add_axes((0.02, 0.1 / height, wide / WIDTH, tall / height))
    drawn = axes.imshow(
        np.where(np.isfinite(values), values.astype(np.float64), np.nan),
        cmap=colormaps[colours].with_extremes(bad=MISSING),
        norm=_norm(values, top, logarithmic),
        aspect="auto",
        interpolation="nearest",
    )
    axes.set_axis_off()
    short = title if len(title) <= 40 else f"{title[:39]}…"
    axes.set_title(short, fontsize=11, parse_math=False)
    scale = figure.add_axes((0.04 + wide / WIDTH, 0.1 / height, 0.035, tall / height))
    figure.colorbar(drawn, cax=scale)
    out = BytesIO()
    figure.savefig(out, format="png", dpi=RESOLUTION, metadata={"Software": None})
    return out.getvalue()


def _norm(values: Array, top: float, logarithmic: bool) -> Any:
    """Return the scale of a map."""
    from matplotlib.colors import LogNorm, Normalize

    positive = values[np.isfinite(values) & (values > 0)]
    # A few pixels that are fitted exactly would take most of a logarithmic scale.
    bottom = float(np.quantile(positive, 0.01)) if len(positive) else 0.0
    if logarithmic and 0.0 < bottom < top / 100 < np.inf:
        return LogNorm(bottom, top, clip=True)
    return Normalize(0.0, top if 0 < top < np.inf else 1.0)


def plot_spectra(
    axes: Any,
    spectra: Array,
    names: Sequence[str],
    wavelengths: Vector | None,
    bad_bands: Array | None,
) -> None:
    """Draw spectra, one line each, with gaps at bad bands."""
    along = np.arange(spectra.shape[1]) if wavelengths is None else wavelengths
    for i, (name, spectrum) in enumerate(zip(names, spectra, strict=True)):
        line = spectrum if bad_bands is None else np.where(bad_bands, np.nan, spectrum)
        style = LINES[i // len(COLOURS) % len(LINES)]
        axes.plot(along, line, color=COLOURS[i % len(COLOURS)], ls=style, lw=1.3, label=name)
    axes.set_xlabel("band" if wavelengths is None else "wavelength")
    axes.set_ylabel("value")
    axes.margins(x=0.01)
    columns = 3 if max(map(len, names)) <= 16 else 2
    legend = axes.legend(
        ncols=columns, loc="upper center", bbox_to_anchor=(0.5, -0.16), frameon=False
    )
    for text in legend.get_texts():
        text.set_parse_math(False)


def plot_residuals(axes: Any, residual: Array) -> None:
    """Draw a histogram of residuals, without the largest 1 %."""
    known = residual[np.isfinite(residual)]
    top = float(np.quantile(known, 0.99))
    axes.hist(known, bins=60, range=(0.0, top if top > 0 else 1.0), color=COLOURS[0])
    axes.set_xlabel("residual of a pixel")
    axes.set_ylabel("pixels")
