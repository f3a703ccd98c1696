"""A real tracking server in a process of its own, and one that misbehaves as it is told to."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_START = "import sys, uvicorn; uvicorn.run('mlflow.server.fastapi_app:app', host='127.0.0.1', port=int(sys.argv[1]), log_level='warning')"


@contextmanager
def tracking_server(folder: Path, store: str | None = None) -> Iterator[str]:
    """The address of a running server whose data lie in a folder. It needs mlflow-skinny, flask and flask-cors."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        **os.environ,
        "_MLFLOW_SERVER_FILE_STORE": store or f"sqlite:///{folder / 'server.db'}",
        "_MLFLOW_SERVER_ARTIFACT_ROOT": "mlflow-artifacts:/",
        "_MLFLOW_SERVER_ARTIFACT_DESTINATION": str(folder / "artifacts"),
        "_MLFLOW_SERVER_SERVE_ARTIFACTS": "true",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "MLFLOW_ALLOW_FILE_STORE": "true",
    }
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen([sys.executable, "-c", _START, str(port)], env=environment, stdout=log, stderr=log, cwd=folder)
        address = f"http://127.0.0.1:{port}"
        try:
            _await(f"{address}/health", process, folder / "server.log")
            yield address
        finally:
            process.terminate()
            process.wait(timeout=30)


def _await(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + 120
    while time.monotonic() < end:
        assert process.poll() is None, log.read_text()[-2000:]
        try:
            with urllib.request.urlopen(url, timeout=5):  # noqa: S310 - our own server
                return
        except OSError:
            time.sleep(0.2)
    raise AssertionError(log.read_text()[-2000:])


@dataclass
class Asked:
    """A request as a misbehaving server got it."""

    method: str
    path: str
    body: Any
    headers: dict[str, str]
    port: int
    """Of the client: one for each connection."""


@dataclass
class Odd:
    """A server that answers with what `answer` gives: (status, body, headers), JSON-able bodies too; None resets the connection."""

    answer: Callable[[Asked], tuple[int, Any, dict[str, str]] | None]
    address: str = ""
    asked: list[Asked] = field(default_factory=list)


@contextmanager
def odd_server(answer: Callable[[Asked], tuple[int, Any, dict[str, str]] | None]) -> Iterator[Odd]:
    """Serve until the block ends."""
    odd = Odd(answer)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

        def _answer(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            raw = self.rfile.read(size)
            asked = Asked(self.command, self.path, json.loads(raw) if raw else None, dict(self.headers), self.client_address[1])
            odd.asked.append(asked)
            given = odd.answer(asked)
            if given is None:
                self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True
                return
            status, body, headers = given
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            for name, value in ({"Content-Type": "application/json", "Content-Length": str(len(content))} | headers).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = _answer  # noqa: N815 - names of the base class

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        odd.address = f"http://127.0.0.1:{server.server_address[1]}"
        yield odd
        server.shutdown()
