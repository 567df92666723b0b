"""The bars of the ladder's page, wide and narrow; the rest is as on all pages."""

STYLE = """\
.rung {
  display: grid; grid-template-columns: 5rem 1fr 5rem 5rem; gap: .6rem; align-items: center;
  padding: .25rem 0; font-variant-numeric: tabular-nums;
}
.head { color: var(--quiet); font-size: .9rem; border-bottom: 1px solid var(--line); }
.name { font-weight: 600; }
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
  .rung { grid-template-columns: 4.3rem 1fr 4rem; font-size: .92rem; }
  .rung > .quiet, .head > :last-child { display: none; }
}
@media (forced-colors: active) { .bar > span, .key { forced-color-adjust: none; } }
"""
