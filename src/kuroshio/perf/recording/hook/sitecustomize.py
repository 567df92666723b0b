"""Records a program with torch.profiler without a change to it.

Python imports this at its start because `kuroshio perf record` put this folder on PYTHONPATH. It
stands alone: the program's Python need not know Kuroshio, and may be an older one. As soon as torch
has been imported, recording begins (or after --skip steps of the optimizer); it ends with the
program, or earlier by --steps or --seconds. Whatever goes wrong here is noted for the recorder to
say, and never raised into the program.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
_SETTINGS = "KUROSHIO_RECORD"  # in the environment: JSON of folder, skip, steps, seconds


class _Torch:
    """On sys.meta_path until torch is imported; then the recording begins."""

    def find_spec(self, name, path=None, target=None):  # type: ignore[no-untyped-def]
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_record(module):  # type: ignore[no-untyped-def]
                execute(module)
                _Recording(module).prepare()

            spec.loader.exec_module = execute_and_record  # type: ignore[method-assign]
        return spec


class _Recording:
    """Of this process: waiting, under way, or over."""

    def __init__(self, torch):  # type: ignore[no-untyped-def]
        import json

        settings = json.loads(os.environ[_SETTINGS])
        self.folder, self.skip = settings["folder"], settings["skip"]
        self.steps, self.seconds = settings["steps"], settings["seconds"]
        self.torch, self.pid = torch, os.getpid()
        self.profiler = self.optimizer = self.thread = None
        self.starting = self.over = False
        self.counted = 0
        self.notes: list[str] = []

    def prepare(self) -> None:
        """Begin, or wait for the first step to be recorded; `note` says that torch was seen."""
        import atexit

        self.note("")
        try:
            self._count_steps()
            self._make_way()
            self._end_on_sigterm()
            if not self.skip:
                self.start()
        except Exception as problem:
            self.note(f"torch.profiler could not begin: {problem}")
        atexit.register(self.stop)

    def start(self) -> None:
        import threading

        profiler = self.torch.profiler
        self.starting = True
        try:
            self.profiler = profiler.profile(
                activities=profiler.supported_activities(),
                schedule=lambda step: profiler.ProfilerAction.RECORD,  # so that steps are named
            )
            self.profiler.start()
        except BaseException:
            self.profiler, self.over = None, True
            raise
        finally:
            self.starting = False
        self.thread = threading.get_ident()
        if self.seconds:
            timer = threading.Timer(self.seconds, self._time_is_over)
            timer.daemon = True
            timer.start()

    def stop(self) -> None:
        """Write what was recorded; harmless a second time, and in a process that was forked."""
        if self.profiler is None or self.over or os.getpid() != self.pid:
            return
        self.over = True
        rank = os.environ.get("RANK", "")
        name = f"trace-{f'rank{rank}-' if rank.isdigit() else ''}{self.pid}.json.gz"
        part = os.path.join(self.folder, "." + name)
        try:
            self.profiler.stop()
            self.profiler.export_chrome_trace(part)
            os.replace(part, os.path.join(self.folder, name))
        except Exception as problem:
            self.note(f"torch.profiler could not write its trace: {problem}")
            if os.path.exists(part):
                os.remove(part)
        self.profiler = None

    def note(self, what: str) -> None:
        if what:
            self.notes.append(what)
        try:
            with open(os.path.join(self.folder, f".hook-{self.pid}"), "w") as file:
                file.write("\n".join(self.notes))
        except OSError:
            pass

    def _count_steps(self) -> None:
        try:
            from importlib import import_module

            on_step = import_module("torch.optim.optimizer").register_optimizer_step_post_hook
        except (ImportError, AttributeError):
            if self.skip or self.steps:
                self.note("this torch does not tell of its optimizers' steps (2.0 and later do)")
                self.skip = self.steps = 0
            return
        on_step(self._stepped)

    def _stepped(self, optimizer, *_) -> None:  # type: ignore[no-untyped-def]
        """A step of the program is one of the optimizer that stepped first."""
        import weakref

        try:
            if self.optimizer is None:
                self.optimizer = weakref.ref(optimizer)
            if self.over or self.optimizer() is not optimizer:
                return
            self.counted += 1
            if self.profiler is None:
                if self.counted >= self.skip:
                    self.start()
            elif self._in_its_thread():
                if self.steps and self.counted >= self.skip + self.steps:
                    self.stop()
                else:
                    self.profiler.step()
        except Exception as problem:
            self.note(f"a step was not recorded: {problem}")

    def _make_way(self) -> None:
        """Two profilers cannot be at work: if the program begins its own, this one ends."""
        own = self.torch.autograd.profiler.profile
        if not hasattr(own, "_prepare_trace"):
            return
        prepare = own._prepare_trace

        def prepare_alone(profiler, *args, **options):  # type: ignore[no-untyped-def]
            if not self.starting and self.profiler is not None and self._in_its_thread():
                self.note("the program began a profiler of its own, and recording ended there")
                self.stop()
            return prepare(profiler, *args, **options)

        own._prepare_trace = prepare_alone

    def _end_on_sigterm(self) -> None:
        """Where that would end the program at once: write first, and then let it end so."""
        import signal
        import threading

        if threading.current_thread() is not threading.main_thread():
            return
        if signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
            return

        def end(number, _):  # type: ignore[no-untyped-def]
            self.stop()
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

        signal.signal(signal.SIGTERM, end)

    def _time_is_over(self) -> None:
        """A profiler ends in the thread that began it: the main one is asked to, as by a signal."""
        import ctypes
        import threading

        if self.thread != threading.main_thread().ident:
            self.note("recording was begun by another thread than the main one, so no --seconds")
            return

        def stop(_):  # type: ignore[no-untyped-def]
            self.stop()
            return 0

        self._pending = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(stop)
        ctypes.pythonapi.Py_AddPendingCall(self._pending, None)

    def _in_its_thread(self) -> bool:
        import threading

        return self.thread == threading.get_ident()


def _run_hidden_one() -> None:
    """The sitecustomize that would have been imported if this one had not been before it."""
    others = [folder for folder in sys.path if os.path.abspath(folder or ".") != _HERE]
    sys.path[:] = others
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


# A process that multiprocessing spawned is a worker that loads data, as a rule.
if os.environ.get(_SETTINGS) and "--multiprocessing-fork" not in getattr(sys, "orig_argv", ()):
    sys.meta_path.insert(0, _Torch())
_run_hidden_one()
