"""The whole ladder: files, machine, exact answer, rungs, studies; and a document of it all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from ..archive import part
from ..archive.badfile import BadFile
from ..device import cuda
from ..device.cpu import available_threads
from ..device.gpu import GpuError
from ..device.names import check_device, gpu_name
from ..errors import Refusal
from ..messages import printable
from ..perf.counters.read import read as read_counters
from ..perf.environment import cpu_model
from . import records
from .catalogue import OURS, RUNGS, Rung
from .counters import add_counters
from .cpu_place import CpuPlace
from .files import files_of
from .gpu_place import GpuPlace
from .machine import Machine, measured
from .place import Place
from .predictions import Predicted, engine, predicted
from .problem import Problem, problem_of
from .results import RungResult
from .run import Answers, Ground, run_engine, run_rung, why_not
from .studies import NAMES, studies
from .study import Study

Progress = Callable[[str, int, int], None]  # (stage, done, total)
THREADS_MOST = 8  # a processor: readers may wait for a disk, and more of them only take memory
PASSES = 7  # of 12 days that a rung is measured by, at least: fewer give no interval


@dataclass(frozen=True)
class Options:
    """What is asked for; see `kuroshio ladder --help`."""

    output: Path
    scale: str = "small"
    device: str = "auto"
    only: Sequence[str] = ()
    files: Path | None = None
    threads: int | None = None
    runs: int | None = None
    counters: Sequence[Path] = ()


@dataclass
class Climb:
    """What came of it."""

    problem: Problem
    device: str
    model: str
    why: str  # this device
    machine: Machine
    results: list[RungResult] = field(default_factory=list)
    studies: list[Study] = field(default_factory=list)


def climb(options: Options, progress: Progress) -> Climb:
    """Run what is asked for; raises Refusal, before anything is made where that can be known."""
    problem = problem_of(options.scale)
    rungs, alone = _chosen(options.only)
    threads = _number("threads", options.threads, available_threads())
    _check_threads(threads)
    passes = sum(len(each.doys) == problem.pass_days for each in problem.passes())
    runs = _number("runs", options.runs, -(-PASSES // passes))
    counted = [kernel for path in options.counters for kernel in read_counters(path)]
    for folder in filter(None, (options.output, options.files)):
        _check_name(folder)
    with ExitStack() as at_end:
        at_end.enter_context(_advice())
        place, why = at_end.enter_context(_place(options.device, threads))
        out = options.output
        scratch = at_end.enter_context(_scratch(out))
        files = files_of(
            problem, options.files or out / f"files-{problem.grid:g}deg", progress, threads
        )
        steps = 2 + len(rungs) + len(alone)

        def step(number: int) -> None:
            progress("ladder", number, steps)

        step(0)
        machine = measured(problem, files, place, threads, scratch)
        step(1)
        ground = Ground(problem, files, place, machine, scratch, runs)
        answers = Answers(ground)
        found = Climb(problem, place.name, place.model, why, machine)
        for number, rung in enumerate(rungs):
            step(2 + number)
            found.results.append(_run(rung, ground, answers, out, found.results))
        singly = studies(ground, answers)
        for number, name in enumerate(alone):
            step(2 + len(rungs) + number)
            found.studies.append(singly[name]())
        step(steps)
    add_counters(found.results, counted, machine.memory_gb)
    return found


def _run(
    rung: Rung, ground: Ground, answers: Answers, out: Path, before: list[RungResult]
) -> RungResult:
    """A rung between its record's seal and its conclusion."""
    if why := why_not(rung, ground):
        return RungResult(rung.key, rung.title, skipped=why, rings=rung.rings)
    ran = [result for result in before if result.passes]
    expected = prediction(rung, ground)
    opened = records.begin(
        out, rung, ground.problem, ground.device, expected, ran[-1] if ran else None
    )
    try:
        if rung.key == OURS:
            result = run_engine(rung, ground, answers, PASSES)
        else:
            result = run_rung(rung, ground, answers)
    except BaseException as error:  # a record that stays open would seem to be under way
        records.skip(opened, _short(error))
        raise
    records.end(opened, ground.problem, result)
    result.predicted = expected.as_json()
    return result


def _short(error: BaseException) -> str:
    """What ended a rung, fit for a record."""
    if isinstance(error, KeyboardInterrupt):
        return "it was interrupted"
    said = error.what if isinstance(error, GpuError) else str(error)
    return printable(said).rstrip(".") or type(error).__name__


def prediction(rung: Rung, ground: Ground) -> Predicted:
    """Of a pass of 12 days."""
    passing = next(ground.problem.passes())
    if rung.costs is None:
        return engine(ground.problem, ground.machine)
    return predicted(
        rung.costs(ground.problem, passing), rung.rings, ground.problem, passing, ground.machine
    )


def _chosen(only: Sequence[str]) -> tuple[list[Rung], list[str]]:
    """Rungs and studies of these names, in their order; all of none."""
    asked = {name.lower() for name in only}
    known = {name.lower() for name in (*(rung.key for rung in RUNGS), *NAMES)}
    if unknown := [name for name in only if name.lower() not in known]:
        raise Refusal(
            f"There is no rung {unknown[0]!r}. Rungs are {', '.join(rung.key for rung in RUNGS)}; "
            f"studies of one strategy are {', '.join(NAMES)}."
        )
    rungs = [rung for rung in RUNGS if not asked or rung.key.lower() in asked]
    return rungs, [name for name in NAMES if not asked or name in asked]


@contextmanager
def _place(device: str, threads: int) -> Iterator[tuple[Place, str]]:
    """The device that is asked for, and why it is this one."""
    check_device(device)
    gpu, why = None, "as asked"
    if device == "auto":
        why = "the first GPU"
        try:
            gpu = cuda.first()
        except GpuError as error:
            why = error.what
    elif device != "cpu":
        if gpu_name(device).number is None:
            raise Refusal(f"The ladder runs on one device; give one, such as cuda:0, not {device}.")
        gpu = cuda.by_name(device)
    if gpu is None:
        with CpuPlace(cpu_model() or "unknown", threads) as place:
            yield place, why
    else:
        with GpuPlace(gpu) as on_gpu:
            yield on_gpu, why


def _check_threads(threads: int) -> None:
    if threads > (most := THREADS_MOST * available_threads()):
        raise Refusal(
            f"{threads:,} threads were asked for, and here {most} are the most: {THREADS_MOST} a "
            "processor. Give fewer, or nothing for as many as there are processors."
        )


def _check_name(folder: Path) -> None:
    """The NetCDF library takes no other names, nor do records."""
    try:
        str(folder).encode()
    except UnicodeEncodeError as error:
        raise Refusal(
            f"The name of the folder {folder} is not UTF-8; rename it or give another one."
        ) from error


@contextmanager
def _advice() -> Iterator[None]:
    """What to do about a damaged file, which elsewhere is a person's own."""
    try:
        yield
    except BadFile as error:
        raise Refusal(
            f"The file {error.path} cannot be used: {error.reason}. Remove it, and the ladder "
            "makes it again."
        ) from error


@contextmanager
def _scratch(out: Path) -> Iterator[Path]:
    """A hidden folder in `out`; it goes even if a signal ends the process without unwinding."""
    folder = part.begin(out / "ladder")
    try:
        try:
            out.mkdir(parents=True, exist_ok=True)
            folder.mkdir()
        except OSError as error:
            raise Refusal(
                f"The folder {out} cannot be written to: {error.strerror}. Choose another with -o."
            ) from error
        yield folder
    finally:
        with suppress(OSError):  # -o is a file, or its disk is read-only
            part.discard(folder)


def _number(what: str, given: int | None, default: int) -> int:
    if given is not None and given < 1:
        raise Refusal(f"{given} {what} were asked for; give 1 or more, or nothing for {default}.")
    return given or default
