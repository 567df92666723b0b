"""How the page looks, by day and by night, wide and narrow."""

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
.rung {
  display: grid; grid-template-columns: 9.5rem 1fr 5rem 5rem; gap: .6rem; align-items: center;
  padding: .25rem 0; font-variant-numeric: tabular-nums;
}
.head { color: var(--quiet); font-size: .9rem; border-bottom: 1px solid var(--line); }
.name { font-weight: 600; line-height: 1.25; }
.what { display: block; font-weight: 400; font-size: .85rem; color: var(--quiet); }
.value { text-align: right; }
.bar { display: flex; height: 1.1rem; min-width: 1px; }
.bar.share { height: .45rem; margin-top: .15rem; opacity: .85; }
.bar > span { display: block; flex: none; }
.bar > span + span { box-shadow: inset 1px 0 0 var(--paper); }
.part-0 { background: #56b4e9; }
.part-1 { background: #e69f00; }
.part-2 { background: #009e73; }
.part-3 { background: #d55e00; }
.part-4 { background: #cc79a7; }
.part-5 { background: #0072b2; }
@media (max-width: 40rem) {
  .rung { grid-template-columns: 1fr 4rem; font-size: .92rem; row-gap: .1rem; }
  .name, .head > :first-child { grid-column: 1 / -1; }
  .what { display: inline; }
  .rung > .quiet, .head > :last-child { display: none; }
  dl { grid-template-columns: 1fr; }
  dd { margin: 0 0 .4rem; }
}
@media (forced-colors: active) { .bar > span, .key { forced-color-adjust: none; } }
"""
