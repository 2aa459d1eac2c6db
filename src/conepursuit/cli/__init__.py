"""The command line, ``conepursuit``; it needs ``pip install "conepursuit[cli]"``.

- ``app``: the commands, with ``options``, and ``data`` those of ``conepursuit datasets``; what
  computes is imported inside them.
- ``solving`` (with ``problems`` and ``fits``), ``auditing``, ``factoring``, ``unmixing`` (with
  ``endmembers`` and ``unmixed``), ``catalogue``: one command each.
- ``reading``, ``tables``, ``layouts``, ``opening``: matrices and targets from files; ``writing``:
  files written.
- ``display``: tables for the terminal.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from io import TextIOWrapper
from unicodedata import category

DONE, NOT_CONVERGED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130
"""The exit codes."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; errors are one line on stderr.

    Parameters
    ----------
    arguments : sequence of str, optional
        What follows the name of the program; by default what the shell passed on.
    """
    _print_what_can_be_encoded()
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        return complain("interrupted.", INTERRUPTED)
    except ModuleNotFoundError as error:
        text = f'{error.name} is not installed. Use pip install "conepursuit[cli]".'
        return complain(text, BAD_INPUT)
    except ImportError as error:  # of a library that reads files; the text says how to install it
        return complain(str(error), BAD_INPUT)
    except MemoryError as error:
        return complain(f"there is not enough memory. {error}", BAD_INPUT)
    except (ValueError, OSError) as error:
        return complain(described(error), BAD_INPUT)
    except Exception as error:
        # A wrong option: typer brings its own copy of click's exceptions, or click's, by version.
        if not hasattr(error, "format_message"):
            raise
        return complain(error.format_message(), BAD_INPUT)


def _print_what_can_be_encoded() -> None:
    """Let streams replace what they cannot encode, rather than fail when a fit is done."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="replace")


def _run(arguments: Sequence[str] | None) -> int:
    from conepursuit.cli.app import app

    given = list(sys.argv[1:] if arguments is None else arguments)
    code = app(args=given or ["--help"], prog_name="conepursuit", standalone_mode=False)
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    return int(code or DONE)


def described(error: ValueError | OSError) -> str:
    """Return what was wrong, with the name of the file where there is one."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {(error.strerror or str(error)).lower()}."
    return str(error)


def printable(text: str) -> str:
    """Return a text with escapes, such such as an x1b, in place of what is no character to be seen.

    A terminal obeys control characters, and few formats of files take them in names.
    """
    seen = (c if c.isprintable() or category(c) == "Zs" else repr(c)[1:-1] for c in text)
    return "".join(seen)


def complain(text: str, code: int) -> int:
    """Print one line on stderr and return the exit code."""
    print("conepursuit:", printable(" ".join(text.split())), file=sys.stderr)
    return code
