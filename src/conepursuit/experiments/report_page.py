"""The frame and the style of the report.

Dark is for screens only, so that nothing dark is printed. The figures take their black from
``currentColor`` and their white from ``--paper``.
"""

from __future__ import annotations

STYLE = """\
:root {
  color-scheme: light;
  --paper: #ffffff; --ink: #1c2024; --soft: #59636e; --rule: #d5dadf; --shade: #f5f7f9;
  --link: #005f96; --yes: #00684c; --no: #a84300;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    color-scheme: dark;
    --paper: #14171a; --ink: #e4e7ea; --soft: #9aa4ae; --rule: #363d44; --shade: #1d2125;
    --link: #6cbdf0; --yes: #3fc79a; --no: #f59450;
  }
}
*, *::before, *::after { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body {
  max-width: 62rem; margin: 0 auto; padding: 2.5rem 1.5rem 4rem;
  background: var(--paper); color: var(--ink); overflow-wrap: anywhere;
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans",
    "DejaVu Sans", sans-serif;
  counter-reset: figure table;
}
p, nav, dl { max-width: 44rem; }
h1, h2 { line-height: 1.2; text-wrap: balance; }
h1 { margin: 0 0 .8rem; font-size: 2rem; letter-spacing: -.01em; }
h2 { margin: 0 0 .3rem; font-size: 1.4rem; }
a { color: var(--link); text-underline-offset: .15em; text-decoration-thickness: .06em; }
section { margin-top: 3.2rem; padding-top: 1.4rem; border-top: 1px solid var(--rule); }
nav ul { margin: 0; padding: 0; list-style: none; columns: 20rem; column-gap: 2rem; }
nav li { padding: .12rem 0; break-inside: avoid; }
.about, .note, .remark { color: var(--soft); }
.about { margin: 0; }
.notice {
  max-width: 44rem; margin: 1rem 0; padding: .7rem 1rem;
  border-left: .25rem solid var(--no); background: var(--shade);
}
.notice p { margin: 0; }
.notice ul { margin: .4rem 0 0; padding-left: 1.2rem; }
code { font-size: .9em; }
.note { margin: .5rem 0 0; font-size: .9rem; }

/* Wide tables scroll in their own box, with a shadow where there is more; their titles and first
   columns stay in sight. */
.table { margin: 1.8rem 0; counter-increment: table; }
.scroll {
  overflow-x: auto; container-type: inline-size;
  background: linear-gradient(var(--paper), var(--paper)) right / 2rem 100% no-repeat local,
    linear-gradient(to left, var(--rule), transparent) right / .6rem 100% no-repeat;
}
.scroll:focus-visible { outline: 2px solid var(--link); outline-offset: 3px; }
table {
  border-collapse: collapse; font-size: .9rem; line-height: 1.4;
  border-bottom: 2px solid var(--ink); font-variant-numeric: tabular-nums lining-nums;
}
caption { padding-bottom: .5rem; text-align: left; font-size: 1rem; }
caption span { display: inline-block; position: sticky; left: 0; max-width: 100cqi; }
caption span::before { content: "Table " counter(table) ". "; }
figcaption::before { counter-increment: figure; content: "Figure " counter(figure) ". "; }
caption span::before, figcaption::before { font-weight: 600; }
th, td { padding: .32rem .7rem; vertical-align: baseline; text-align: right; }
td { white-space: nowrap; }
th { font-weight: 600; overflow-wrap: normal; }
thead th { vertical-align: bottom; border-bottom: 1px solid var(--ink); }
thead tr { border-top: 2px solid var(--ink); }
tbody tr + tr { border-top: 1px solid var(--rule); }
tbody th { font-weight: 400; max-width: 20rem; overflow-wrap: break-word; }
.data { min-width: min(100%, 28rem); }
.data th:first-child {
  position: sticky; left: 0; background: var(--paper); text-align: left; padding-left: 0;
}

/* The summary is text: it wraps, and why a claim fails stands below the claim. */
.summary { width: 100%; }
.summary th, .summary td { text-align: left; white-space: normal; overflow-wrap: anywhere; }
.summary th:first-child, .remark td:first-child { padding-left: 0; }
.summary th, .summary td { padding-right: 0; }
.summary th[scope=row] { width: 46%; max-width: none; }
.summary th[scope=rowgroup] { padding-top: 1.1rem; font-weight: 600; }
.summary tbody .remark { border-top: 0; }
.summary .remark td { padding-top: 0; }
.summary .verdict, .summary thead th { white-space: nowrap; overflow-wrap: normal; }
.verdict { font-weight: 600; color: var(--yes); }
.verdict.no { color: var(--no); }
.verdict.untested { color: var(--soft); }

figure { margin: 1.8rem 0; max-width: 38rem; }
figure svg { display: block; width: 100%; height: auto; }
figcaption { margin-top: .5rem; font-size: .95rem; }
dl {
  display: grid; grid-template-columns: fit-content(40%) 1fr; gap: .25rem 1.5rem; margin: 1rem 0;
}
dt { color: var(--soft); }
dd { margin: 0; font-variant-numeric: tabular-nums; }

@media (max-width: 40rem) {
  body { padding: 1.4rem .8rem 3rem; }
  h1 { font-size: 1.6rem; }
  h2 { font-size: 1.25rem; }
  section { margin-top: 2.4rem; }
  th, td { padding-left: .5rem; padding-right: .5rem; }
  .data tbody th { max-width: 7.5rem; }
  .summary { font-size: .82rem; }
  .summary th[scope=row] { width: 38%; }
}
@media print {
  @page { margin: 16mm 15mm; }
  html { font-size: 10pt; }
  body { max-width: none; padding: 0; }
  h2, .about, caption { break-after: avoid; }
  h2, figure, tr, dl, .table { break-inside: avoid; }
  section { margin-top: 1.6rem; padding-top: 1rem; }
  figure { max-width: 13cm; margin: 1.2rem 0; }
  .scroll { overflow: visible; container-type: normal; background: none; }
  .data { font-size: min(8.5pt, 72pt / var(--columns)); }
  th, td { padding: .2em .6em; }
  .data tbody th { max-width: 10rem; }
  .data th:first-child { position: static; }
  a { color: inherit; text-decoration: none; }
}
"""

PAGE = """\
<!DOCTYPE html>
<html lang="en-GB">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<header>
<h1>{title}</h1>
{opening}
</header>
{contents}
<main>
{sections}
</main>
</body>
</html>
"""
"""Its fields are title, style, opening, contents and sections, all but the style HTML."""
