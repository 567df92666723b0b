"""`kuroshio perf experiment`: records of what was predicted, measured and concluded."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import Refusal
from ..messages import note

if TYPE_CHECKING:
    from .experiments import Document, Record, Result

SUMMARY = "keep experiments as text files: a prediction sealed before the measurement, judged by it"
EXAMPLES = """examples:
  kuroshio perf experiment new 'Read files in order' \\
    --predict 'host_s.median new/old in 0.70..0.85'
  kuroshio perf experiment seal 1     # when the rest is written
  kuroshio perf bench work.py:old --vs work.py:new -o ab.json
  kuroshio perf experiment run 1 --new ab.json
  kuroshio perf experiment conclude 1 accept --reason '20 % faster everywhere'
  kuroshio perf experiment list
  kuroshio perf experiment show 1 --json

Each explains itself: kuroshio perf experiment run --help"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(required=True, metavar="ACTION", dest="action")
    _add_new(_action(actions, "new", "write a new record, to be completed with an editor", _new))
    seal = _action(actions, "seal", "seal a record that is complete, before it is measured", _seal)
    seal.add_argument("which", help="number, name or path of the record")
    _add_run(_action(actions, "run", "take a result into a sealed record and judge it", _run))
    _add_conclude(_action(actions, "conclude", "say what follows from it, and why", _conclude))
    _action(actions, "list", "the trail of all experiments as a table", _list)
    show = _action(actions, "show", "one experiment", _show)
    show.add_argument("which", help="number, name or path of the record")


def run(arguments: argparse.Namespace) -> None:
    arguments.act(arguments)


def _action(actions: Any, name: str, summary: str, act: Any) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(
        name,
        help=summary,
        description=summary,
        epilog=_EXAMPLES[name],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--folder",
        metavar="FOLDER",
        help="where the records are (default: experiments/ of the repository, or here)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(act=act)
    return parser


def _add_new(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("title", help="one line; the name of the file comes from it")
    for name, what in (
        ("observation", "what is seen now, with figures"),
        ("hypothesis", "why it is so"),
        ("change", "what is changed, and nothing else"),
    ):
        parser.add_argument(f"--{name}", default="", metavar="TEXT", help=what)
    parser.add_argument(
        "--predict",
        metavar="TEXT",
        help="'FIGURE new/old in LOW..HIGH' (a ratio) or 'FIGURE in LOW..HIGH from BEFORE' (a "
        "value); FIGURE is host_s.median and the like, or a path in JSON ($.stages[0].seconds); "
        "one end may be open; 'exact' at the end for a count, which has no noise",
    )
    parser.add_argument(
        "--new-row", default="", metavar="ROW", help="which row of a bench result: 'case=a size=64'"
    )
    parser.add_argument(
        "--old-row", default="", metavar="ROW", help="the same of the old one (default: as new)"
    )
    parser.add_argument("--follows", type=int, metavar="N", help="another round of experiment N")


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("which", help="number, name or path of the record")
    parser.add_argument("--new", metavar="FILE", help="JSON of perf bench (or an A/B) or another's")
    parser.add_argument("--old", metavar="FILE", help="the same without the change, for a ratio")
    parser.add_argument("--command", metavar="COMMAND", help="or a command that prints such JSON")
    parser.add_argument("--old-command", metavar="COMMAND", help="the same without the change")
    parser.add_argument(
        "--incorrect", metavar="WHY", help="or only this: the output is wrong, as perf bench said"
    )
    parser.add_argument(
        "--repeats", type=int, metavar="N", help="run commands N times, in turns (default 7)"
    )
    parser.add_argument(
        "--check", metavar="COMMAND", help="run first; correct if it ends with status 0"
    )
    parser.add_argument(
        "--correct-path", metavar="PATH", help="where the JSON says true if the output is correct"
    )
    parser.add_argument(
        "--json-path", metavar="PATH", help="where the figure lies, if the prediction only names it"
    )


def _add_conclude(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("which", help="number, name or path of the record")
    parser.add_argument("decision", choices=["accept", "roll-back", "another-round"])
    parser.add_argument("--reason", required=True, metavar="TEXT", help="why")


_EXAMPLES = {
    "new": "example:\n  kuroshio perf experiment new 'Blocks of 256 threads' \\\n    "
    "--predict 'device_s.median new/old in 0.80..0.95'",
    "seal": "example:\n  kuroshio perf experiment seal 3",
    "run": "examples:\n  kuroshio perf experiment run 3 --new new.json --old old.json\n"
    "  kuroshio perf experiment run 3 --new ab.json      # bench OLD --vs NEW\n"
    "  kuroshio perf experiment run 3 --command './job --json' \\\n"
    "    --old-command './old --json' --check './job --test' --repeats 9",
    "conclude": "example:\n  kuroshio perf experiment conclude 3 roll-back \\\n    "
    "--reason 'no faster, and harder to read'",
    "list": "example:\n  kuroshio perf experiment list --json",
    "show": "example:\n  kuroshio perf experiment show 3",
}


def _folder(arguments: argparse.Namespace) -> Path:
    from .experiments import default_folder

    return Path(arguments.folder) if arguments.folder else default_folder()


def _find(arguments: argparse.Namespace) -> Path:
    from .experiments import find

    return find(_folder(arguments), arguments.which)


def _new(arguments: argparse.Namespace) -> None:
    from .experiments import Record, create, find, now, parse_prediction, parse_rows

    folder = _folder(arguments)
    if arguments.follows is not None:
        find(folder, arguments.follows)
    new, old = parse_rows(arguments.new_row), parse_rows(arguments.old_row)
    if (new or old) and arguments.predict is None:
        raise Refusal("--new-row and --old-row are part of a prediction: give --predict, too.")
    given = arguments.predict is not None
    prediction = parse_prediction(arguments.predict, new, old) if given else None
    record = create(
        folder,
        Record(
            title=arguments.title,
            created=now(),
            observation=arguments.observation,
            hypothesis=arguments.hypothesis,
            change=arguments.change,
            prediction=prediction,
            follows=arguments.follows,
        ),
    )
    complete = all((record.observation, record.hypothesis, record.change, record.prediction))
    then = "Seal it" if complete else "Complete it, then seal it"
    _say(arguments, record, f"{record.path} was written. {then}: kuroshio perf experiment seal "
         f"{record.number}")  # fmt: skip


def _seal(arguments: argparse.Namespace) -> None:
    from .experiments import sealed, update

    record = update(_find(arguments), sealed)
    assert record.seal
    seal = record.seal.sha256[:16]
    _say(arguments, record, f"{record.path} is sealed ({seal}): {record.prediction}. Commit it, "
         "then measure.")  # fmt: skip


def _run(arguments: argparse.Namespace) -> None:
    from .experiments import load, require_open, sealed, sentence, update, with_result

    _check_sources(arguments)
    path = _find(arguments)
    record = load(path)
    require_open(record)
    if record.seal is None:
        if arguments.command is None:
            raise Refusal(
                f"{path} is not sealed, and a prediction comes before the measurement: seal it "
                "(kuroshio perf experiment seal), then measure, then give the files."
            )
        record = update(path, sealed)
        note(f"{path} is sealed now, before the command runs: {record.prediction}.")
    result = _measured(arguments, record)
    try:
        record = update(path, lambda newest: with_result(newest, result))
    except Refusal as refusal:
        measured = f"What was measured: {sentence(record, result)}"
        raise Refusal(refusal.message, log=measured) from refusal
    _say(arguments, record, f"{path}: {sentence(record, result)}")


def _measured(arguments: argparse.Namespace, record: Record) -> Result:
    """Correctness first: where the check fails nothing is measured."""
    from .experiments import incorrect, measure, passes, read, result_of
    from .experiments.commands import REPEATS

    if arguments.incorrect is not None:
        return incorrect(record, arguments.incorrect)
    if arguments.check is not None:
        passed, words = passes(arguments.check)
        if not passed:
            last = words.strip().rpartition("\n")[2][:200]
            said = f", saying: {last}" if last else ""
            given = (arguments.new, arguments.old, arguments.command)
            return incorrect(
                record,
                f"the check {arguments.check!r} failed{said}",
                [source for source in given if source is not None],
            )

    def judged(new: list[Document], old: list[Document]) -> Result:
        return result_of(
            record,
            new,
            old,
            json_path=arguments.json_path,
            correct_path=arguments.correct_path,
            checked=arguments.check is not None,
            paired=arguments.command is not None,
        )

    if arguments.command is None:
        old = [] if arguments.old is None else [read(arguments.old)]
        return judged([read(arguments.new)], old)
    repeats = arguments.repeats
    if repeats is None:
        repeats = 1 if record.prediction and record.prediction.exact else REPEATS
    return judged(*measure(arguments.command, arguments.old_command, repeats, look=judged))


def _check_sources(arguments: argparse.Namespace) -> None:
    files, commands = (
        [getattr(arguments, name) is not None for name in names]
        for names in (("new", "old"), ("command", "old_command"))
    )
    if sum((files[0], commands[0], arguments.incorrect is not None)) != 1:
        raise Refusal(
            "Give what was measured, in one way: --new FILE (with --old FILE for a ratio), or "
            "--command COMMAND (with --old-command COMMAND), or --incorrect WHY."
        )
    if (files[1] and not files[0]) or (commands[1] and not commands[0]):
        raise Refusal(
            "Files and commands are not mixed: --new with --old, --command with --old-command."
        )
    if arguments.incorrect is not None and not arguments.incorrect.strip():
        raise Refusal("--incorrect says why the output is wrong, in words.")
    if arguments.repeats is not None and (not commands[0] or arguments.repeats < 1):
        raise Refusal("--repeats says how often commands are run: 1 or more, with --command.")


def _conclude(arguments: argparse.Namespace) -> None:
    from .experiments import concluded, update
    from .experiments.record import ACCEPT, DECIDED

    decision = arguments.decision.replace("-", " ")
    record = update(_find(arguments), lambda r: concluded(r, decision, arguments.reason))
    then = (
        f". The next: kuroshio perf experiment new 'TITLE' --follows {record.number}"
        if decision == "another round"
        else "."
    )
    if decision == ACCEPT and record.results[-1].verdict not in DECIDED:
        note(
            "The last result is undecided, and so stays in the record: whether the change does "
            "what was predicted is not known. More repeats may tell, in another round."
        )
    _say(arguments, record, f"{record.path}: {decision}{then}")


def _list(arguments: argparse.Namespace) -> None:
    from .experiments import broken, load, records

    folder = _folder(arguments)
    good, bad = [], []
    for path in records(folder):
        try:
            good.append(load(path))
        except Refusal as refusal:
            bad.append((path.name, refusal.message))
    if not good and not bad and not arguments.json:
        raise Refusal(
            f"There are no experiments in {folder}. Begin one (kuroshio perf experiment new "
            "'TITLE'), or name another folder with --folder."
        )
    from .experiments.show import as_facts, print_json, show_trail

    if arguments.json:
        wrong = [{"file": name, "error": message} for name, message in bad]
        print_json([*map(as_facts, good), *wrong])
    else:
        show_trail(good, bad)
    trouble = [message for _, message in bad]
    trouble += [
        f"{count} experiments have the number {number}: rename the later ones."
        for number, count in Counter(record.number for record in good).items()
        if count > 1
    ]
    trouble += [f"{r.path} was changed after it was sealed: {'; '.join(broken(r))}."
                for r in good if broken(r)]  # fmt: skip
    for message in trouble:
        note(message)
    if trouble:
        raise SystemExit(2)


def _show(arguments: argparse.Namespace) -> None:
    from .experiments import load

    record = load(_find(arguments))
    from .experiments.show import as_facts, print_json, show_record

    if arguments.json:
        print_json(as_facts(record))
    else:
        show_record(record)


def _say(arguments: argparse.Namespace, record: Record, text: str) -> None:
    from ..console import Output
    from .experiments.show import as_facts, print_json

    if arguments.json:
        print_json(as_facts(record))
    else:
        Output().say(text)
