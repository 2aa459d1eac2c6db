"""The commands. What computes is imported inside them, so that the help comes at once."""

from __future__ import annotations

from pathlib import Path
from shutil import get_terminal_size
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from conepursuit.cli import BAD_INPUT, DONE, INTERRUPTED, NOT_CONVERGED, complain
from conepursuit.cli.data import datasets
from conepursuit.cli.options import (
    Extractor,
    Format,
    Header,
    RowNames,
    Transpose,
    Version,
    loss_option,
)


class Commands(TyperGroup):
    """The commands; an interrupt is an exit code, whatever the version of typer makes of one."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None


app = typer.Typer(
    cls=Commands,
    pretty_exceptions_enable=False,
    # Boxes need 80 columns: in less they cut the names of options.
    rich_markup_mode="rich" if get_terminal_size().columns >= 80 else None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(datasets, name="datasets")


EXPERIMENTS = (
    "synthetic",
    "nmf",
    "garrote",
    "tightness",
    "kl",
    "tensor",
    "unmixing",
    "complexity",
    "theory",
)
"""The names in `conepursuit.experiments.runner`, which the help is not to import."""


@app.callback()
def conepursuit(
    version: Version = False,
) -> None:
    """Non-negative fits and factorisations, with a proof of how close to the best they are.

    Each command has its own help: conepursuit solve --help.

    Exit codes: 0, 1 where something has not converged or an audit fails, 2 for bad input.
    """


@app.command(epilog="Example: conepursuit solve A.csv b.csv --max-atoms 5 --out x.json")
def solve(
    atoms: Annotated[str, typer.Argument(metavar="A", help="The matrix, an atom for each column.")],
    targets: Annotated[
        str, typer.Argument(metavar="B", help="The target, or one for each column.")
    ],
    loss: Annotated[
        str, loss_option(("squared", "kullback-leibler"), "; huber is linear beyond DELTA")
    ] = "squared_error",
    delta: Annotated[
        float | None,
        typer.Option(metavar="DELTA", help="The parameter of huber.", show_default="1"),
    ] = None,
    penalty: Annotated[
        float, typer.Option(min=0.0, metavar="LAMBDA", help="Penalty on the sum of the weights.")
    ] = 0.0,
    max_atoms: Annotated[
        int | None, typer.Option(min=1, metavar="K", help="The most weights that are positive.")
    ] = None,
    tol: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            metavar="TOL",
            help="A gap that will do, as a share of the decrease since x = 0.",
            show_default="1e-8; 0 for fits by least squares",
        ),
    ] = None,
    match: Annotated[
        bool, typer.Option("--match", help="Keep the rows whose names are in both files.")
    ] = False,
    transpose: Transpose = None,
    certify: Annotated[
        str | None,
        typer.Option(metavar="X", help="Audit these weights, as a fit by least squares."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write the weights as .csv, or all that is known as .json."
        ),
    ] = None,
    header: Header = None,
    row_names: RowNames = None,
) -> int:
    """Fit b by a non-negative combination of the columns of A.

    Files are .csv, .tsv or .txt, with or without names, .npy, .npz (file.npz:name for one of
    several arrays) or .mtx (Matrix Market), and any of these as .gz, .bz2 or .xz.

    Rows belong together by their names where both files have some, in any order.
    """
    from conepursuit.cli.layouts import Layout

    layout = Layout(header, row_names)
    options: dict[str, Any] = {
        "match": match,
        "transpose": None if transpose is None else transpose.value,
        "tol": tol,
    }
    if certify is None:
        from conepursuit.cli import solving

        options |= {"loss": loss, "delta": delta, "penalty": penalty, "max_atoms": max_atoms}
        return solving.solve(atoms, targets, layout, out=out, **options)
    fitting = loss != "squared_error" or penalty or delta is not None
    if fitting or max_atoms is not None or out is not None:
        raise ValueError(
            "--certify audits a fit by least squares, and goes with none of --loss, --delta, "
            "--penalty, --max-atoms and --out. In Python, conepursuit.certify audits fits of any "
            "loss."
        )
    from conepursuit.cli import auditing

    return auditing.audit(atoms, targets, certify, layout, **options)


@app.command(
    epilog="Example: conepursuit factorize X.csv --components 10 --loss kullback_leibler --out fit"
)
def factorize(
    matrix: Annotated[
        str, typer.Argument(metavar="X", help="The matrix or tensor; NaN or empty is missing.")
    ],
    components: Annotated[
        str,
        typer.Option(
            metavar="K",
            help="The rank; auto: the one that predicts held-out entries best; sources: the "
            "one on whose components two halves of the data agree best.",
        ),
    ] = "auto",
    loss: Annotated[
        str, loss_option(("frobenius", "kullback-leibler"), "", factorizes=True)
    ] = "squared_error",
    tol: Annotated[
        float,
        typer.Option(
            min=0.0, metavar="TOL", help="Sweeps end when one gains less of the objective."
        ),
    ] = 1e-5,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Write the factors, the path of ranks and a summary there."
        ),
    ] = None,
    format_: Annotated[
        Format | None,
        typer.Option("--format", help="How --out writes the factors.", show_default="npy"),
    ] = None,
    header: Header = None,
    row_names: RowNames = None,
) -> int:
    """Find X ~ W H with W, H >= 0, one component after the other.

    A tensor, three axes or more, is approximated by a sum of outer products of vectors >= 0.
    Files are as for conepursuit solve.
    """
    from conepursuit.cli import factoring
    from conepursuit.cli.layouts import Layout

    return factoring.factorize(
        matrix,
        Layout(header, row_names),
        components=components,
        loss=loss,
        tol=tol,
        out=out,
        format_=None if format_ is None else format_.value,
    )


@app.command(
    epilog="Example: conepursuit unmix scene.hdr --endmembers 6 --extractor spa --out maps"
)
def unmix(
    scene: Annotated[
        str,
        typer.Argument(
            metavar="SCENE",
            help="ENVI (.hdr), .mat, .npy, .npz, GeoTIFF, NetCDF or Zarr; file.mat:name is one of "
            "several arrays.",
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the maps and the report.")],
    endmembers: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="How many spectra to find in the scene.")
    ] = None,
    extractor: Annotated[
        Extractor,
        typer.Option(metavar="NAME", help=f"How pixels are chosen: {', '.join(Extractor)}."),
    ] = Extractor.SPA,
    library: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Spectra to use instead: ENVI (.sli), or .csv with one per column, or per row.",
        ),
    ] = None,
    sum_to_one: Annotated[
        bool, typer.Option("--sum-to-one", help="Make the abundances of each pixel add up to 1.")
    ] = False,
    max_endmembers: Annotated[
        int | None, typer.Option(min=1, metavar="K", help="The most endmembers in a pixel.")
    ] = None,
    loss: Annotated[str, loss_option((), "; huber is linear beyond 1")] = "squared_error",
    bad_bands: Annotated[
        str | None,
        typer.Option(
            metavar="BANDS", help="Bands to leave out, counted from 0, with those that SCENE marks."
        ),
    ] = None,
    no_data: Annotated[
        float | None,
        typer.Option(
            metavar="VALUE",
            help="Pixels with this value in all bands have no data.",
            show_default="as SCENE says",
        ),
    ] = None,
    tile_rows: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Rows that are read together.", show_default="about 64 MB"
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an interrupted run in --out.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the results of another run in --out.")
    ] = False,
    header: Header = None,
    row_names: RowNames = None,
) -> int:
    """Find the materials of a hyperspectral scene and map their abundances.

    Maps of abundances, residuals and proven gaps are written in the format of the scene, with
    pictures and a report. A scene may be larger than memory. Bands are written as 0-3,105.
    """
    from conepursuit.cli import unmixing
    from conepursuit.cli.layouts import Layout

    return unmixing.unmix(
        scene,
        out,
        unmixing.Options(
            endmembers=endmembers,
            extractor=extractor.value,
            library=library,
            sum_to_one=sum_to_one,
            max_endmembers=max_endmembers,
            loss=loss,
            bad_bands=bad_bands,
            no_data=no_data,
            tile_rows=tile_rows,
            layout=Layout(header, row_names),
        ),
        resume=resume,
        overwrite=overwrite,
    )


@app.command(epilog="Example: conepursuit demo --out out")
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the figure.")] = Path("out"),
) -> int:
    """Run the synthetic experiment of the paper: a table and a figure, in seconds."""
    from conepursuit.experiments.synthetic import main

    main(["--out", str(out)])
    return DONE


@app.command(
    epilog="Example: conepursuit reproduce synthetic nmf --quick",
    help=f"""Run the experiments of the paper again and set them beside what was published.

    The experiments: {", ".join(EXPERIMENTS)}.

    All of them take about half an hour, and about a minute with --quick.

    Data that is not part of the package is needed for kl, unmixing and most of nmf; see
    conepursuit datasets.
    """,
)
def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME", help="Which; all by default.", autocompletion=lambda: EXPERIMENTS
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for tables and figures.")] = Path("out"),
    quick: Annotated[bool, typer.Option("--quick", help="On a small budget.")] = False,
) -> int:
    """Run experiments of the paper."""
    from rich.console import Console

    from conepursuit.experiments import runner

    unknown = [name for name in names or () if name not in runner.NAMES]
    if unknown:
        known = ", ".join(runner.NAMES)
        return complain(f"there is no experiment {unknown[0]!r}. Use {known}.", BAD_INPUT)
    complete = runner.reproduce(list(names or ()), out, quick, Console())
    return DONE if complete else complain("not all experiments could be run.", NOT_CONVERGED)
