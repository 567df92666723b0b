"""A real browser without a window, driven through its pipe by the DevTools protocol."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-extensions", "--hide-scrollbars", "--remote-debugging-pipe",
)  # fmt: skip
_PATIENCE = 60  # s, on a busy machine


def command() -> str | None:
    """Where a browser is."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """One page of it. What the page's script complains of is in `complaints`."""

    def __init__(self, program: str, profile: Path) -> None:
        to_read, our_write = os.pipe()
        our_read, to_write = os.pipe()
        # The protocol wants numbers 3 and 4; what Python opened may have them.
        high = [os.dup(fd) for fd in (to_read, to_write)]
        line = f'exec "$0" "$@" 3<&{high[0]} 4>&{high[1]}'
        self._process = subprocess.Popen(
            ["bash", "-c", line, program, *_FLAGS, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=high, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        for fd in (to_read, to_write, *high):
            os.close(fd)
        self._in, self._out = our_read, our_write
        self._buffer, self._number, self._session = b"", 0, None
        self.complaints: list[str] = []
        self.requests: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        os.close(self._out)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._in)

    def call(self, method: str, **parameters):
        """Of the protocol; what it answers."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]

    def _next(self) -> dict:
        until = time.monotonic() + _PATIENCE
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(0.0, until - time.monotonic()))
            assert ready, "the browser says nothing"
            piece = os.read(self._in, 1 << 16)
            assert piece, "the browser has ended"
            self._buffer += piece
        line, _, self._buffer = self._buffer.partition(b"\0")
        message = json.loads(line)
        self._note(message.get("method"), message.get("params", {}))
        return message

    def _note(self, method: str | None, told: dict) -> None:
        if method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(told["exceptionDetails"])[:1000])
        elif method == "Log.entryAdded" and told["entry"]["level"] == "error":
            self.complaints.append(told["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(told["request"]["url"])

    def look(self, width: int, height: int = 900, *, dark: bool = False, calm: bool = True) -> None:
        """A window of that size (CSS pixels), by day or by night."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip
        features = [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce" if calm else "no-preference"},
        ]
        self.call("Emulation.setEmulatedMedia", features=features)

    def open(self, path: Path) -> None:
        """A page, until it is loaded and has drawn."""
        self.complaints.clear()
        self.requests.clear()
        self.call("Page.navigate", url=path.as_uri())
        self.wait("document.readyState === 'complete' && location.protocol === 'file:'")
        self.frame()

    def frame(self) -> None:
        """Until what was asked for is drawn."""
        self.do("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))")

    def do(self, script: str):
        """The value of an expression in the page."""
        got = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in got, (script, got["exceptionDetails"])
        return got["result"].get("value")

    def wait(self, condition: str) -> None:
        until = time.monotonic() + _PATIENCE
        while not self.do(condition):
            assert time.monotonic() < until, condition
            time.sleep(0.02)

    def click(self, selector: str) -> None:
        """With the mouse, in the middle of an element."""
        box = f"document.querySelector({json.dumps(selector)})"
        self.do(f"{box}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
        x, y = self.do(
            f"(b => [b.x + b.width / 2, b.y + b.height / 2])({box}.getBoundingClientRect())"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", clickCount=1)
        self.frame()

    def mouse(self, kind: str, x: float, y: float, **more) -> None:
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def key(self, name: str) -> None:
        """Down and up, of the element that has the focus."""
        codes = {"Enter": 13, "ArrowLeft": 37, "ArrowRight": 39, "Escape": 27, "Tab": 9}
        text = {"Enter": "\r"}.get(name, name if len(name) == 1 else "")
        more = {"text": text} if text else {}
        code = codes.get(name, ord(name[0].upper()))
        self.call(
            "Input.dispatchKeyEvent", type="keyDown", key=name, windowsVirtualKeyCode=code, **more
        )
        self.call("Input.dispatchKeyEvent", type="keyUp", key=name, windowsVirtualKeyCode=code)
        self.frame()

    def picture(self, path: Path, *, whole: bool = True) -> None:
        """A PNG, of the whole page or of the window."""
        got = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(got["data"]))
