"""What profilers write that is almost JSON, made JSON; slow, and only of text that needs it.

Names that are not UTF-8; NaN and infinities; control characters; a backslash of a Windows path;
halves of surrogate pairs.
"""

from __future__ import annotations

import json
import re

_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|-?(?:NaN|nan|Infinity|inf)\b', re.DOTALL)
_ESCAPE = re.compile(r'\\(["\\/bfnrt]|u[0-9a-fA-F]{4})?')
_STRANGE = re.compile(r"[\\\x00-\x1f]")


def mended(text: bytes) -> bytes:
    """Undecodable bytes become the replacement character, and numbers that are none null."""
    return _TOKEN.sub(_token, text.decode("utf-8", "replace")).encode()


def _token(found: re.Match[str]) -> str:
    token = found[0]
    if token[0] != '"':
        return "null"
    if not _STRANGE.search(token):
        return token
    escaped = _ESCAPE.sub(lambda each: each[0] if each[1] else r"\\", token)
    value: str = json.loads(escaped, strict=False)
    paired = value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return json.dumps(paired)
