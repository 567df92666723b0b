"""One profiler at a time in a thread, as torch has it."""

import threading

_at_work = {}


class profile:
    def _prepare_trace(self):
        if threading.get_ident() in _at_work:
            raise RuntimeError("Profiler is already enabled on this thread")
        _at_work[threading.get_ident()] = self

    def _end(self):
        if _at_work.pop(threading.get_ident(), None) is not self:
            raise RuntimeError("stopped in another thread")
