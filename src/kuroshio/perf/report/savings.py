"""What a finding could save, in words: what is lost to it, and what no change of it can exceed."""

from __future__ import annotations

from ..findings import figures
from ..findings.finding import Finding


def headline(finding: Finding, form: str) -> str:
    """'285 ms (29%), at most 390 ms (39%)'; empty where it is not known.

    form  of a time and its share, such as '{} ({})'
    """
    if finding.saves is None or finding.bound is None:
        return ""
    lost, most = (_time(ns, finding, form) for ns in (finding.saves, finding.bound))
    return f"at most {most}" if lost == most else f"{lost}, at most {most}"


def clause(finding: Finding) -> str:
    """The same of the whole time, as a sentence goes on."""
    if finding.saves is None or finding.bound is None:
        return ""
    lost, most = (figures.share(ns, finding.of) for ns in (finding.saves, finding.bound))
    if lost == most:
        return f"at most {most} of the time could be saved there"
    return f"{lost} of the time is lost to it, and at most {most} could be saved there"


def counted(finding: Finding) -> str:
    """How it was computed."""
    if finding.at_most is None or finding.at_most == finding.saves:
        return finding.how
    return (
        f"{finding.how}; with other waits that shrink, at most "
        f"{figures.time(finding.at_most)}, for the rest is work that stays"
    )


def _time(ns: int, finding: Finding, form: str) -> str:
    return form.format(figures.time(ns), figures.share(ns, finding.of))
