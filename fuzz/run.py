"""Look for false proofs, wrong exceptions and numbers that are none, in random problems.

    python fuzz/run.py --minutes 5
    python fuzz/run.py --problems 100000 --only nnls --seed 1 --jobs 2

Every proof of a least-squares problem is compared with the truth in exact arithmetic, without a
tolerance; a share of those of other losses with lower values that are found in floats and compared
in 50 digits. Ends with status 1 if anything was found.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import secrets
import signal
import sys
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from time import monotonic, process_time

import numpy as np
from rich.console import Console
from rich.table import Table

import conepursuit
from checks import judge
from families import FAMILIES
from kinds import KINDS
from shrink import shrunk

CHUNK = 25
"""Cases that a process makes before it reports."""

REPORT_SECONDS = 300.0
"""How often a run by several processes says how far it is."""

OF_EACH = 2
"""Failures of each family that are printed as code."""

COMPARED = 0.2
"""The share of answers for other losses that are compared with lower values."""

SHARES = {
    "nnls": 0.5, "sums": 0.15, "gram": 0.05, "nnfit": 0.1, "minimize": 0.04, "audits": 0.12,
    "estimators": 0.02, "own": 0.02,
}  # fmt: skip
"""Of the cases, if all groups are asked for."""


class Findings:
    """Counts by family, kind and loss, and the failures worth showing."""

    def __init__(self):
        self.families, self.kinds, self.losses = {}, {}, {}
        self.failures = {}

    @property
    def tables(self):
        """The tables of counts with their names."""
        return {"family": self.families, "kind": self.kinds, "loss": self.losses}

    def add(self, case, counts, seconds, failures):
        """Take in what was found in one case."""
        kind, of = case.kind, Counter(counts)
        of["seconds"] = seconds
        keys = (case.family,), (kind.group, kind.name), (_loss_of(kind), case.way)
        for table, key in zip(self.tables.values(), keys, strict=True):
            table.setdefault(key, Counter()).update(of)
        for failure in failures:
            key, own = (case.family, case.kind.name, failure.what), case
            if case.kind.single:
                own, failure = case.part(targets=[failure.target]), replace(failure, target=0)
            self._keep(key, own, failure)

    def _keep(self, key, case, failure):
        """Keep the worst failure of each kind; of equals the smallest."""
        worst = self.failures.get(key)
        if worst is None or _badness(case, failure) > _badness(*worst):
            self.failures[key] = case, failure

    def merge(self, other):
        """Take in what another process found."""
        for title, theirs in other.tables.items():
            for key, counts in theirs.items():
                self.tables[title].setdefault(key, Counter()).update(counts)
        for key, (case, failure) in other.failures.items():
            self._keep(key, case, failure)

    @property
    def problems(self):
        """How many problems were posed."""
        return sum(counts["problems"] for counts in self.families.values())


def _loss_of(kind):
    return f"{kind.loss}, intercept" if kind.intercept else kind.loss


def _badness(case, failure):
    gross = failure.what != "false proof" or failure.size > 1e-10
    return gross, -case.A.size, -case.B.shape[1], failure.size


def chunk(seed, first, number, only, compared=COMPARED):
    """Make some cases, each from a seed of its own, and return what was found."""
    findings, names = Findings(), list(FAMILIES)
    groups = [group for group in SHARES if group in only]
    for index in range(first, first + number):
        rng = np.random.default_rng([seed, index])
        shares = np.array([SHARES[group] for group in groups])
        group = groups[rng.choice(len(groups), p=shares / shares.sum())]
        kinds = [kind for kind in KINDS if kind.group == group]
        shares = np.array([kind.share for kind in kinds])
        kind = kinds[rng.choice(len(kinds), p=shares / shares.sum())]
        name = names[index % len(names)]
        began, counts = process_time(), Counter()
        case = kind.make(rng, FAMILIES[name], name)
        failures = judge(case, counts, kind.squares or rng.random() < compared)
        findings.add(case, counts, process_time() - began, failures)
    return findings


def search(seed, problems, minutes, asked, jobs):
    """Make cases until there are enough problems, the time is over, or a signal asks to end.

    `asked` are the groups, and the share of answers that is compared.
    """
    findings, began = Findings(), monotonic()

    def wanted():
        late = minutes is not None and monotonic() - began > 60 * minutes
        return not late and (problems is None or findings.problems < problems)

    # A job in the background ignores Ctrl-C, and would be killed without a word.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    with suppress(KeyboardInterrupt):
        collect(findings, wanted, seed, asked, jobs)
    return findings


def collect(findings, wanted, seed, asked, jobs):
    """Make chunks of cases while more are wanted, in so many processes."""
    first = 0
    if jobs == 1:
        while wanted():
            findings.merge(chunk(seed, first, CHUNK, *asked))
            first += CHUNK
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        running, told = set(), monotonic()
        while wanted():
            while len(running) < 2 * jobs:
                running.add(pool.submit(chunk, seed, first, CHUNK, *asked))
                first += CHUNK
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                findings.merge(future.result())
            if monotonic() > told + REPORT_SECONDS:
                told = monotonic()
                found = len(findings.failures)
                print(f"{findings.problems} problems, {found} failures so far", flush=True)
        for future in running:
            findings.merge(future.result())


HEADINGS = [
    "problems", "answers", "proven %", "tight %", "checked", "unchecked", "suspicious", "false",
    "gross", "wrong value", "not finite", "invalid", "exception", "warning", "refused", "loose %",
    "per second",
]  # fmt: skip

SHARED = {
    "proven %": ("proven", "answers"),
    "tight %": ("tight", "sized"),
    "loose %": ("loose", "compared"),
}
"""Which counts a percentage is made of."""


def rows(counts):
    """Return the numbers of a row of the table."""
    out = []
    for heading in HEADINGS:
        if heading in SHARED:
            part, whole = (counts[name] for name in SHARED[heading])
            out.append(f"{100 * part / whole:.2f}" if whole else "")
        elif heading == "per second":
            out.append(f"{counts['problems'] / max(counts['seconds'], 1e-9):.0f}")
        else:
            out.append(str(counts[heading]))
    return out


def show(findings, console, kinds):
    """Print the counts by family, by group or by kind, and by loss."""
    tables = findings.tables
    if not kinds:
        tables["kind"] = merged(findings.kinds, lambda key: key[:1])
    for title, table in tables.items():
        printed = Table("", *HEADINGS, title=f"By {title}")
        for key in sorted(table):
            printed.add_row(": ".join(key), *rows(table[key]))
        printed.add_row("all", *rows(sum(table.values(), Counter())))
        console.print(printed)
    for line in shares(findings):
        console.print(line)


def merged(table, of):
    """Return the sums of counts whose keys become the same by a function."""
    out = {}
    for key, counts in table.items():
        out.setdefault(of(key), Counter()).update(counts)
    return out


def as_json(findings, seed):
    """Return the counts as text, to compare two builds of the library."""
    tables = {
        title: {": ".join(key): dict(counts) for key, counts in sorted(table.items())}
        for title, table in findings.tables.items()
    }
    return json.dumps({"seed": seed, **tables}, indent=1, default=float)


def shares(findings):
    """Return what of the answers for other losses was stopped early, audited and compared."""
    others = {key: c for key, c in findings.losses.items() if key[0] != "LeastSquares"}
    ways = merged(others, lambda key: key[1])
    total = sum(others.values(), Counter())
    if not total["answers"]:
        return []
    parts = [f"{100 * ways[way]['answers'] / total['answers']:.1f} % {way}" for way in sorted(ways)]
    checked = 100 * total["checked"] / total["answers"]
    return [
        f"other losses: {total['answers']} answers, {', '.join(parts)}; {checked:.1f} % of them "
        f"compared with lower values, {total['suspicious']} of these in 50 digits"
    ]


def show_failures(findings, console):
    """Print the worst failures as code, as small as they can be made."""
    ordered = sorted(findings.failures.values(), key=lambda pair: _badness(*pair), reverse=True)
    seen = Counter()
    for case, failure in ordered:
        seen[case.family] += 1
        if seen[case.family] > OF_EACH:
            continue
        case, failure = shrunk(case, failure)
        console.print(f"\n# {failure.what}, {case.family}, {case.kind.name}: {failure.detail}")
        console.print(case.code(failure.target), soft_wrap=True)


def main():
    """Read the command line and search."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--problems", type=int, help="stop after so many")
    parser.add_argument("--minutes", type=float, help="stop after so long; 2, if neither is given")
    parser.add_argument("--only", choices=list(SHARES), action="append", help="nnls, say")
    parser.add_argument("--seed", type=int, help="for the same problems again")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--json", type=Path, help="write the counts to this file")
    parser.add_argument(
        "--compared", type=float, default=COMPARED,
        help="the share of answers for losses other than least squares that is compared",
    )  # fmt: skip
    parser.add_argument("--kinds", action="store_true", help="a row for each kind of call")
    given = parser.parse_args()
    if given.problems is None and given.minutes is None:
        given.minutes = 2.0
    seed = secrets.randbelow(2**32) if given.seed is None else given.seed
    console = Console(width=200, highlight=False, markup=False)
    console.print(f"seed {seed}, {conepursuit.__file__}")
    asked = given.only or list(SHARES), given.compared
    findings = search(seed, given.problems, given.minutes, asked, given.jobs)
    if given.json:
        given.json.write_text(as_json(findings, seed))
    show(findings, console, given.kinds)
    show_failures(findings, console)
    console.print(f"\n{findings.problems} problems, seed {seed}, {len(findings.failures)} failures")
    sys.exit(1 if findings.failures else 0)


if __name__ == "__main__":
    main()
