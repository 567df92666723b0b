"""The refusal that concerns one file's health, so that --skip-bad can go on without that file."""

from __future__ import annotations

import errno
import os

from ..errors import Refusal

_OURS = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)  # what this process or machine has run out of


class BadFile(Refusal):
    """A file that is unreadable, truncated or corrupt. `path` and `reason` serve the account."""

    def __init__(self, path: str, reason: str) -> None:
        reason = " ".join(str(reason).split()).rstrip(".")
        super().__init__(
            f"The file {path} cannot be used: {reason}. "
            "Fetch it again, or go on without it with --skip-bad (skip_bad=True), "
            "which counts its days as missing and records its name."
        )
        self.path = path
        self.reason = reason

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        return BadFile, (self.path, self.reason)


def unreadable(path: str, number: int) -> Refusal:
    """The refusal for a file that the system will not open or read, by its error's number.

    Where the lack is not the file's it is no BadFile: to skip the file would lose sound data.
    """
    reason = f"it cannot be read ({os.strerror(number)})"
    if number not in _OURS:
        return BadFile(path, reason)
    return Refusal(
        f"The file {path} may be sound, but {reason}. Use fewer --threads (threads=), close other "
        "programs, or raise the limit of open files (ulimit -n)."
    )
