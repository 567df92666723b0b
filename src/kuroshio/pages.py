"""What every page of ours shares: it is whole in one file, fetches nothing, and text stays text."""

from __future__ import annotations

from html import escape

from .messages import printable

# Colours by day and by night, and how words and tables look.
STYLE = """\
:root {
  --paper: #ffffff; --ink: #1b1f24; --quiet: #59636e; --line: #d5dae0; --stripe: #f6f8fa;
  --good: #116329; --bad: #a40e26; --open: #7a5200; --link: #0550ae;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #12161b; --ink: #e6e9ed; --quiet: #9aa5b1; --line: #343c46; --stripe: #1a2027;
    --good: #57c974; --bad: #ff8a80; --open: #e3b341; --link: #79b8ff;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif;
}
main { max-width: 76rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.6rem; line-height: 1.2; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 .6rem; }
h3 { font-size: 1.05rem; margin: 1.6rem 0 .5rem; }
a { color: var(--link); }
.note, .quiet { color: var(--quiet); }
.note { font-size: .9rem; max-width: 60rem; }
.good { color: var(--good); font-weight: 600; }
.bad { color: var(--bad); font-weight: 600; }
.open { color: var(--open); font-weight: 600; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .92rem; font-variant-numeric: tabular-nums; }
th, td {
  padding: .3rem .7rem; border-bottom: 1px solid var(--line); text-align: left;
  vertical-align: top;
}
thead th { border-bottom: 2px solid var(--line); vertical-align: bottom; }
tbody tr:nth-child(even) { background: var(--stripe); }
th, td { white-space: nowrap; }
.number { text-align: right; }
thead th, td.words, .facts td { white-space: normal; }
td.words { min-width: 14rem; }
.facts th { white-space: nowrap; font-weight: 400; color: var(--quiet); }
.facts td { overflow-wrap: anywhere; min-width: 14rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; max-width: 60rem; }
dt { color: var(--quiet); }
dd { margin: 0; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; padding: 0; }
.key { display: inline-block; width: .9rem; height: .9rem; margin-right: .4rem; }
.key { vertical-align: -.1rem; }
@media (max-width: 40rem) {
  dl { grid-template-columns: 1fr; }
  dd { margin: 0 0 .4rem; }
}
"""


def text(words: str) -> str:
    """As text of HTML or in an attribute."""
    return escape(printable(words))


def whole(title: str, body: str, style: str = "", policy: str = "") -> str:
    """The page.

    title   text
    body    HTML
    style   CSS, after STYLE
    policy  what its content security policy allows besides styles of its own, such as a script
    """
    allowed = "; ".join(
        ["default-src 'none'", "style-src 'unsafe-inline'", *([policy] if policy else [])]
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(allowed)}">\n'
        f"<title>{text(title)}</title>\n"
        f"<style>\n{STYLE}{style}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n</body>\n"
        "</html>\n"
    )
