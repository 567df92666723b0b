"""The refusal that concerns one file's health, so that --skip-bad can go on without that file."""

from __future__ import annotations

from ..errors import Refusal


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
