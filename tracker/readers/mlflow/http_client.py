"""Requests to a tracking server: kept connections, credentials, retries, pages. The only module that knows HTTP."""

from __future__ import annotations

import base64
import gzip
import http.client
import os
import random
import socket
import ssl
import threading
import time
import zlib
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import unquote, urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

import orjson

from tracker.errors import InputError, SourceFormatError
from tracker.readers.lines import json_value, shorten
from tracker.readers.mlflow.model import Address

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

TRANSIENT = frozenset({408, 429, 500, 502, 503, 504})
RETRIES = 5
BACKOFF_S = 0.5
LONGEST_WAIT_S = 60.0
TIMEOUT_S = 120.0
_FIRST_RETRIES = 2
"""Retries before anything was answered: an address may simply be wrong."""
_LOGIN_HINT = "set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN"
_SERVER_HINT = "is it the address of an MLflow tracking server?"
_TRUE = {"true", "1", "yes"}


class MissingError(InputError):
    """What was asked for does not exist: an endpoint that an older server lacks, or a run."""


class RejectedError(InputError):
    """The server understood the request and does not do it (such as a filter that it does not know)."""


class BrokenError(InputError):
    """The server fails at this request, also when asked again."""


class GoneError(InputError):
    """The server does not answer any more (or never did)."""


def server_address(text: str) -> Address:
    """The address of a server as it is stored: without login, password, query and fragment."""
    parts = urlsplit(text)
    host = parts.netloc.rpartition("@")[2]
    return Address(f"{parts.scheme}://{host}{parts.path.rstrip('/')}", text)


class Client:
    """One server. Safe to use from several threads: each has its own connection."""

    def __init__(self, address: Address) -> None:
        parts = urlsplit(address.url)
        self.address = address
        try:
            self._host, self._port = parts.hostname or "", parts.port
        except ValueError as err:
            message = f"no address: {err}"
            raise InputError(message, where=address, hint="write http://HOST:PORT") from err
        if not self._host:
            message = "no address: it names no host"
            raise InputError(message, where=address, hint="write http://HOST:PORT")
        self._secure = parts.scheme == "https"
        self._base = parts.path.rstrip("/")
        self._headers = _headers(parts.username, parts.password)
        self._tls = _tls() if self._secure else None
        self._timeout = _number("MLFLOW_HTTP_REQUEST_TIMEOUT", TIMEOUT_S)
        self._retries = int(_number("MLFLOW_HTTP_REQUEST_MAX_RETRIES", RETRIES))
        self._proxy = _proxy(parts.scheme, self._host)
        self._local = threading.local()
        self._kept: set[http.client.HTTPConnection] = set()
        self._closed = False
        self._reached = self._gone = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        """Close the kept connections. Requests are still answered afterwards, each by a connection of its own."""
        self._closed = True
        while self._kept:
            self._kept.pop().close()

    def get(self, path: str, query: Mapping[str, Any] | None = None, *, retries: int | None = None) -> dict[str, Any]:
        """The JSON object that a GET answers with."""
        return self._json(*self._request("GET", path, query, None, retries=retries), path)

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The JSON object that a search answers with; it is asked again on failure, so only use it for what changes nothing."""
        return self._json(*self._request("POST", path, None, orjson.dumps(body)), path)

    def download(self, path: str, query: Mapping[str, Any] | None = None, *, limit: int | None = None) -> bytes:
        """The bytes that a GET answers with, or the first of them."""
        return self._request("GET", path, query, None, limit=limit)[0]

    def pages(self, path: str, body: dict[str, Any], key: str, *, method: str = "POST") -> Iterator[list[dict[str, Any]]]:
        """Lists of objects under `key`, page by page."""
        seen: set[str] = set()
        while True:
            answer = self.post(path, body) if method == "POST" else self.get(path, body)
            held = answer.get(key, [])
            if not isinstance(held, list):
                raise SourceFormatError(str(self.address), path, f"a list as {key!r}", held)
            yield [one for one in held if isinstance(one, dict)]
            token = answer.get("next_page_token")
            if not token:
                return
            if token in seen or not isinstance(token, str):
                message = f"{path}: its pages do not end (the same page token again)"
                raise InputError(message, where=self.address, hint="a proxy may answer from a cache: ask the server directly")
            seen.add(token)
            body = {**body, "page_token": token}

    # ---- one request ---------------------------------------------------------------------------

    def _request(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None,
        body: bytes | None,
        *,
        retries: int | None = None,
        limit: int | None = None,
    ) -> tuple[bytes, str]:
        """Body and content type of the answer. Asks again when the server is busy or the connection breaks."""
        target = f"{self._base}{path}" + (f"?{urlencode(query, doseq=True)}" if query else "")
        allowed = self._retries if retries is None else min(retries, self._retries)
        allowed = 0 if self._gone else allowed
        tried, wait, problem = 0, 0.0, ""
        while True:
            if tried:
                time.sleep(wait)
            try:
                status, headers, content = self._once(method, target, body, limit)
            except (OSError, http.client.HTTPException) as err:
                if isinstance(err, ssl.SSLCertVerificationError):
                    message = f"its certificate cannot be verified: {err.verify_message}"
                    hint = "set MLFLOW_TRACKING_SERVER_CERT_PATH, or MLFLOW_TRACKING_INSECURE_TLS=true to go without"
                    raise InputError(message, where=self.address, hint=hint) from err
                problem, after, answered = _said(err), None, False
                most = allowed if self._reached else min(allowed, 0 if isinstance(err, socket.gaierror) else _FIRST_RETRIES)
            else:
                self._reached, self._gone = True, False
                if status < 300:
                    return content, headers.get("Content-Type") or ""
                if status not in TRANSIENT:
                    raise self._refused(status, headers, content, path)
                problem, after, most, answered = f"HTTP {status} {_message(content)}".strip(), headers.get("Retry-After"), allowed, True
            if tried >= most:
                problem += f" ({tried + 1} times)" if tried else ""
                if answered:
                    message = f"{path}: {problem}"
                    raise BrokenError(message, where=self.address, hint="look at the server's log, or try again later")
                self._gone = True
                hint = "run the command again when it is back" if self._reached else _SERVER_HINT
                message = f"{'does not answer' if self._reached else 'cannot be reached'}: {problem}"
                raise GoneError(message, where=self.address, hint=hint)
            wait = _wait(tried, after)
            tried += 1

    def _once(self, method: str, target: str, body: bytes | None, limit: int | None) -> tuple[int, http.client.HTTPMessage, bytes]:
        held: http.client.HTTPConnection | None = getattr(self._local, "connection", None)
        try:
            return self._ask(held or self._connect(), method, target, body, limit)
        except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError, http.client.CannotSendRequest):
            if held is None:
                raise
            return self._ask(self._connect(), method, target, body, limit)  # a kept connection that the server has closed

    def _ask(
        self, connection: http.client.HTTPConnection, method: str, target: str, body: bytes | None, limit: int | None
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        self._local.connection = None
        done = False
        try:
            through = target
            if self._proxy is not None and not self._secure:
                through = f"http://{self._host}{f':{self._port}' if self._port else ''}{target}"
            connection.request(
                method, through or "/", body, {**self._headers, **({"Content-Type": "application/json"} if body is not None else {})}
            )
            answer = connection.getresponse()
            content = answer.read() if limit is None else answer.read(limit)
            done = answer.isclosed() and not answer.will_close
            encoding = (answer.headers.get("Content-Encoding") or "").lower()
        finally:
            if done and not self._closed:
                self._local.connection = connection
                self._kept.add(connection)
            else:
                self._kept.discard(connection)
                connection.close()
        return answer.status, answer.headers, _unpacked(content, encoding)

    def _connect(self) -> http.client.HTTPConnection:
        host, port = self._host, self._port
        if self._proxy is not None:
            host, port = self._proxy
        if self._secure:
            made: http.client.HTTPConnection = http.client.HTTPSConnection(host, port, timeout=self._timeout, context=self._tls)
            if self._proxy is not None:
                made.set_tunnel(self._host, self._port or 443)
            return made
        return http.client.HTTPConnection(host, port, timeout=self._timeout)

    def _json(self, content: bytes, kind: str, path: str) -> dict[str, Any]:
        try:
            found = orjson.loads(content)
        except ValueError:
            if content.lstrip()[:1] == b"<" or "html" in kind:
                message = f"{path}: answers with a web page instead of JSON"
                raise InputError(
                    message, where=self.address, hint=f"{_SERVER_HINT} a login page may stand before it: {_LOGIN_HINT}"
                ) from None
            found = json_value(content, f"{self.address}{path}")  # bare NaN tokens of older servers
        if not isinstance(found, dict):
            raise SourceFormatError(str(self.address), path, "a JSON object", found, hint=_SERVER_HINT)
        return found

    def _refused(self, status: int, headers: http.client.HTTPMessage, content: bytes, path: str) -> InputError:
        said = _message(content)
        if status in {401, 403}:
            return InputError(
                f"HTTP {status}: it wants other credentials{f' ({said})' if said else ''}", where=self.address, hint=_LOGIN_HINT
            )
        if 300 <= status < 400:
            place = urlsplit(headers.get("Location") or "")
            there = f"{place.scheme}://{place.netloc.rpartition('@')[2]}" if place.netloc else "another address"
            return InputError(f"leads to {there}", where=self.address, hint="name that address, if it is the tracking server's")
        kind = MissingError if status in {404, 405, 501} else RejectedError
        return kind(f"{path}: HTTP {status} {said}".strip(), where=self.address, hint=_SERVER_HINT)


def _headers(user: str | None, password: str | None) -> dict[str, str]:
    headers = {"Accept": "application/json", "Accept-Encoding": "gzip", "User-Agent": "trackr"}
    if user is None:
        user, password = os.environ.get("MLFLOW_TRACKING_USERNAME"), os.environ.get("MLFLOW_TRACKING_PASSWORD")
    else:
        user, password = unquote(user), unquote(password or "")
    token = os.environ.get("MLFLOW_TRACKING_TOKEN")
    if user:
        headers["Authorization"] = "Basic " + base64.b64encode(f"{user}:{password or ''}".encode()).decode()
    elif token:
        headers["Authorization"] = f"Bearer {token}"
    workspace = os.environ.get("MLFLOW_WORKSPACE")
    if workspace:
        headers["X-MLFLOW-WORKSPACE"] = workspace
    return headers


def _tls() -> ssl.SSLContext:
    certificates = os.environ.get("MLFLOW_TRACKING_SERVER_CERT_PATH")
    own = os.environ.get("MLFLOW_TRACKING_CLIENT_CERT_PATH")
    try:
        if os.environ.get("MLFLOW_TRACKING_INSECURE_TLS", "").lower() in _TRUE:
            context = ssl.create_default_context()
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        else:
            context = ssl.create_default_context(cafile=certificates)
        if own:
            context.load_cert_chain(own)
    except (OSError, ssl.SSLError) as err:
        message = f"certificate that cannot be read: {err}"
        raise InputError(
            message, where=own or certificates, hint="see MLFLOW_TRACKING_SERVER_CERT_PATH, MLFLOW_TRACKING_CLIENT_CERT_PATH"
        ) from err
    return context


def _proxy(scheme: str, host: str) -> tuple[str, int | None] | None:
    """Host and port of the proxy that the environment names for this host."""
    told = getproxies().get(scheme)
    if not told or proxy_bypass(host):
        return None
    parts = urlsplit(told if "://" in told else f"http://{told}")
    return (parts.hostname, parts.port) if parts.hostname else None


def _number(name: str, otherwise: float) -> float:
    try:
        return max(float(os.environ[name]), 0.0)
    except (KeyError, ValueError):
        return otherwise


def _wait(tried: int, after: str | None) -> float:
    """Seconds until the next try: what the server asks for, else twice as long each time."""
    if after is not None and after.strip().isdigit():
        return min(float(after), LONGEST_WAIT_S)
    spread = 1 + random.random() / 4  # so that clients do not come back all at once
    return min(BACKOFF_S * float(2**tried), LONGEST_WAIT_S) * spread


def _unpacked(content: bytes, encoding: str) -> bytes:
    if encoding != "gzip":
        return content
    try:
        return gzip.decompress(content)
    except (EOFError, OSError, zlib.error):
        unpacker = zlib.decompressobj(31)
        try:
            return unpacker.decompress(content)  # the beginning of it, where only that was asked for
        except zlib.error as err:
            message = "an answer whose compression is broken"
            raise http.client.HTTPException(message) from err


def _message(content: bytes) -> str:
    """What an error's body says, in one line."""
    try:
        told = orjson.loads(content)
    except ValueError:
        told = None
    if isinstance(told, dict) and isinstance(told.get("message"), str):
        return " ".join(shorten(told["message"]).split())[:200]
    return "" if content.lstrip()[:1] == b"<" else " ".join(shorten(content).split())[:200]


def _said(err: Exception) -> str:
    if isinstance(err, TimeoutError):
        return "no answer in time"
    if isinstance(err, http.client.IncompleteRead):
        return "the answer was cut off"
    if isinstance(err, http.client.BadStatusLine) and not isinstance(err, http.client.RemoteDisconnected):
        return "the answer is no HTTP"
    return str(getattr(err, "strerror", None) or err or type(err).__name__)


def batches_of(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    """Slices of a sequence."""
    return (items[start : start + size] for start in range(0, len(items), size))
