"""Chromium, spoken to over its DevTools protocol through a pipe: what a page looks like and what its console says.

Nothing beyond Python's standard library is needed; where there is no Chromium, PROGRAM is None.
"""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

PROGRAM = shutil.which("chromium") or shutil.which("google-chrome")
# For one answer: a busy machine starts a browser slowly.
TIMEOUT = 180


class Browser:
    """One headless browser with one page. `console` has every message, warning and error of the page."""

    def __init__(self):
        self.console = []
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_browser, self._to = os.pipe()
        self._from, from_browser = os.pipe()

        def pipes():
            # The browser reads commands from descriptor 3 and writes to descriptor 4.
            commands, answers = os.dup(to_browser), os.dup(from_browser)
            os.dup2(commands, 3)
            os.dup2(answers, 4)

        self._process = subprocess.Popen(
            [PROGRAM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--hide-scrollbars", f"--user-data-dir={self._folder.name}", "--remote-debugging-pipe", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=pipes, close_fds=False, start_new_session=True,
        )  # fmt: skip
        os.close(to_browser)
        os.close(from_browser)
        self._rest, self._next, self._session = b"", 0, None
        pages = [target for target in self.call("Target.getTargets")["targetInfos"] if target["type"] == "page"]
        attached = self.call("Target.attachToTarget", targetId=pages[0]["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self._to)
        os.close(self._from)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._folder.cleanup()

    def call(self, method, **parameters):
        """The result of a command; events that arrive meanwhile are kept."""
        self._next += 1
        message = {"id": self._next, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._next:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def _read(self):
        while b"\0" not in self._rest:
            previous = signal.signal(signal.SIGALRM, self._late)
            signal.alarm(TIMEOUT)
            try:
                piece = os.read(self._from, 1 << 20)
            finally:
                signal.alarm(0)
                signal.signal(signal.SIGALRM, previous)
            if not piece:
                raise RuntimeError("the browser ended")
            self._rest += piece
        text, self._rest = self._rest.split(b"\0", 1)
        event = json.loads(text)
        self._keep(event)
        return event

    @staticmethod
    def _late(*_):
        raise TimeoutError("the browser does not answer")

    def _keep(self, event):
        parameters = event.get("params", {})
        if event.get("method") == "Runtime.consoleAPICalled":
            self.console.append(str([argument.get("value") for argument in parameters["args"]]))
        elif event.get("method") == "Runtime.exceptionThrown":
            self.console.append(json.dumps(parameters["exceptionDetails"])[:500])
        elif event.get("method") == "Log.entryAdded":
            self.console.append(parameters["entry"]["text"])

    def value(self, expression):
        """What a JavaScript expression, or the promise that it gives, comes to."""
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(json.dumps(result["exceptionDetails"])[:500])
        return result["result"].get("value")

    def show(self, url, width=1440, height=900, scheme="light"):
        """Opens a page, and waits until it is loaded and drawn."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Page.navigate", url=url)
        self.value("new Promise((done) => document.readyState === 'complete' ? done() : addEventListener('load', done))")
        self.drawn()

    def drawn(self):
        self.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50))))")

    def until(self, condition, seconds=60):
        """Waits for a JavaScript condition, at most so long."""
        for _ in range(seconds * 10):
            if self.value(condition):
                return
            time.sleep(0.1)

    def screenshot(self, **clip):
        """PNG, in base64; `clip` is x, y, width and height in the page."""
        return self.call("Page.captureScreenshot", captureBeyondViewport=True, clip={**clip, "scale": 1})["data"]
