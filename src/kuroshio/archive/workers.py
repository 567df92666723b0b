"""Scans many files in worker processes: HDF5's global lock makes threads useless for that.

The workers come of one plain child process that runs this module, so the caller's script needs no
`if __name__ == '__main__'` guard. It imports the file libraries once, without a thread, and forks
itself as often as there are cores: nothing is forked beside running threads, and one start is paid
and not one for each core. Where there is no fork it does the work alone.

Its standard input is one pickled `_Job`. Its standard output is shared by all workers: frames so
small that the system writes each whole, which the reader sorts by worker and joins into pickled
`_Answer`s.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import select
import signal
import struct
import subprocess
import sys
import traceback
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, BinaryIO, NoReturn

from ..errors import Refusal
from .facts import FileFacts
from .layout import Layout

if TYPE_CHECKING:
    from .scan import Scanner

_BATCH = 32
_MOST = 16
_HEADER = struct.Struct("<H?H")  # worker, whether its answer ends here, bytes that follow
_FRAME = getattr(select, "PIPE_BUF", 512) - _HEADER.size
_NUMBER = struct.Struct("<I")
_FITS = 128 * _NUMBER.size  # bytes that any pipe takes before it is read
_ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
# Of pipes that broke, and of what a start-up hook of Python has printed between the answers.
_NO_ANSWER = (
    OSError, EOFError, ValueError, TypeError, pickle.PickleError, AttributeError, ImportError,
    LookupError,
)  # fmt: skip
Result = FileFacts | Refusal
# Builtin containers, as the module that is run has another name for classes of its own.
_Job = tuple[str | None, dict[str, int], list[list[str]], int]  # variable, select, batches, workers
_Answer = tuple[int, list[Result], dict[str, Layout]]  # number of the batch, layouts not yet told


def scan_here(scanner: Scanner, paths: Sequence[str]) -> Iterator[tuple[str, Result]]:
    """Facts, or why there are none, of files scanned in this process."""
    for path in paths:
        yield path, _attempt(scanner, path)


class Workers:
    """Processes that start with this object, for one `scan`; `stop` ends them whatever they do."""

    def __init__(self) -> None:
        self._server = _start()

    def scan(
        self,
        paths: Sequence[str],
        variable: str | None,
        select: Mapping[str, int],
        layouts: dict[str, Layout],
    ) -> Iterator[tuple[str, Result]]:
        """Facts, or why there are none, in any order; new layouts are added to `layouts`.

        Where workers die, their work is done here, so that no file is lost.
        """
        batches = [list(paths[i : i + _BATCH]) for i in range(0, len(paths), _BATCH)]
        count = max(1, min(_MOST, _cores(), len(batches)))
        waiting = dict(enumerate(batches))
        for number, results, found in self._answers((variable, dict(select), batches, count)):
            layouts.update((k, v) for k, v in found.items() if k not in layouts)
            yield from zip(waiting.pop(number), results, strict=True)
            if not waiting:  # nobody waits until the processes have ended
                return
        from .scan import Scanner

        here = Scanner(variable, select)
        here.layouts = layouts
        for batch in waiting.values():
            yield from scan_here(here, batch)

    def _answers(self, job: _Job) -> Iterator[_Answer]:
        """What the workers answer, until they have ended or say what cannot be understood."""
        requests, answers = self._server.stdin, self._server.stdout
        assert requests is not None
        assert answers is not None
        parts: dict[int, list[bytes]] = defaultdict(list)
        try:
            pickle.dump(job, requests)
            requests.close()
            while len(header := answers.read(_HEADER.size)) == _HEADER.size:
                worker, whole, size = _HEADER.unpack(header)
                parts[worker].append(answers.read(size))
                if whole:
                    number, results, found = pickle.loads(b"".join(parts.pop(worker)))
                    yield number, results, found
        except _NO_ANSWER:
            return

    def stop(self) -> None:
        if os.name == "posix":
            with contextlib.suppress(OSError):
                os.killpg(self._server.pid, signal.SIGKILL)
        self._server.kill()
        self._server.wait()
        for pipe in (self._server.stdin, self._server.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _start() -> subprocess.Popen[bytes]:
    paths = os.pathsep.join(p or os.getcwd() for p in sys.path)
    return subprocess.Popen(
        [sys.executable, "-m", "kuroshio.archive.workers"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **dict.fromkeys(_ONE_THREAD, "1"), "PYTHONPATH": paths},
        process_group=0 if os.name == "posix" else None,  # Ctrl-C is the parent's affair
    )


def _attempt(scanner: Scanner, path: str) -> Result:
    try:
        return scanner.scan(path)
    except Refusal as refusal:
        return refusal


def _serve(requests: BinaryIO, answers: int) -> None:
    """The child process: a job in, and the answers out of as many workers as it asks for."""
    from .scan import Scanner  # before there is a job: this is what takes long

    try:
        job: _Job = pickle.load(requests)
    except (EOFError, pickle.UnpicklingError):  # the parent has gone
        return
    variable, select, batches, count = job
    scanner = Scanner(variable, select)
    gc.freeze()  # what has been imported stays: it need not be searched, nor copied by the workers
    _attempt(scanner, batches[0][0])  # so that all workers know what the files are like
    taken, given = os.pipe()
    numbers = b"".join(map(_NUMBER.pack, range(len(batches))))
    os.write(given, numbers[:_FITS])  # the first worker need not wait for the last
    workers: list[int] = []
    with contextlib.suppress(OSError, AttributeError):  # too many processes, or no fork at all
        for worker in range(count):
            pid = os.fork()
            if pid == 0:
                _be_worker(scanner, batches, (taken, given), answers, worker)
            workers.append(pid)
    os.close(taken)
    if not workers:
        _work(scanner, batches, range(len(batches)), answers, 0)
    with contextlib.suppress(OSError):  # where all workers have died
        os.write(given, numbers[_FITS:])
    os.close(given)
    for pid in workers:
        os.waitpid(pid, 0)


def _be_worker(
    scanner: Scanner, batches: list[list[str]], pipe: tuple[int, int], answers: int, worker: int
) -> NoReturn:
    """The life of a forked process: batches from the pipe that all workers take from."""
    taken, given = pipe
    try:
        os.close(given)
        _work(scanner, batches, _dealt(taken), answers, worker)
    except OSError:
        pass  # nobody listens any more
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)  # what the server has begun is not for its workers to end


def _dealt(numbers: int) -> Iterator[int]:
    while len(number := os.read(numbers, _NUMBER.size)) == _NUMBER.size:
        yield _NUMBER.unpack(number)[0]


def _work(
    scanner: Scanner, batches: list[list[str]], numbers: Iterable[int], answers: int, worker: int
) -> None:
    told = set[str]()
    for number in numbers:
        results = [_attempt(scanner, path) for path in batches[number]]
        fresh = {k: v for k, v in scanner.layouts.items() if k not in told}
        told.update(fresh)
        _send((number, results, fresh), answers, worker)


def _send(answer: _Answer, answers: int, worker: int) -> None:
    body = pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)
    for at in range(0, len(body), _FRAME):
        part = body[at : at + _FRAME]
        os.write(answers, _HEADER.pack(worker, at + _FRAME >= len(body), len(part)) + part)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its workers
    _serve(sys.stdin.buffer, sys.stdout.fileno())
