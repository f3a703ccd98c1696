"""Requests to a tracking server: credentials, answers, pages, and what went wrong in one line. urllib3 knows HTTP."""

from __future__ import annotations

import base64
import http.client
import os
import ssl
import time
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import unquote, urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

import orjson
import urllib3
from urllib3.exceptions import HTTPError, InsecureRequestWarning, MaxRetryError, ProtocolError
from urllib3.exceptions import TimeoutError as LateError

from tracker.errors import InputError, SourceFormatError
from tracker.readers.lines import json_value, shorten
from tracker.readers.mlflow.model import Address
from tracker.readers.values import number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

TRANSIENT = frozenset({408, 429, 500, 502, 503, 504})
RETRIES = 5
BACKOFF_S = 0.5
LONGEST_WAIT_S = 60
TIMEOUT_S = 120.0
_CONNECTIONS = 16
"""Kept at most; more may be open."""
_FIRST_RETRIES = 2
"""Retries before anything was answered: an address may simply be wrong."""
_LOGIN_HINT = "set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN"
_LOG_HINT = "look at the server's log, or try again later"
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


class _CutError(Exception):
    """An answer of which only a part was wanted, and that broke off before it: the retries of urllib3 are for whole ones."""

    def __init__(self, cut: HTTPError) -> None:
        super().__init__(str(cut))
        self.cut = cut


def server_address(text: str) -> Address:
    """The address of a server as it is stored: without login, password, query and fragment."""
    parts = urlsplit(text)
    host = parts.netloc.rpartition("@")[2]
    return Address(f"{parts.scheme}://{host}{parts.path.rstrip('/')}", text)


class Client:
    """One server. Safe to use from several threads."""

    def __init__(self, address: Address) -> None:
        parts = urlsplit(address.url)
        try:
            host, _ = parts.hostname, parts.port
        except ValueError as err:
            message = f"no address: {err}"
            raise InputError(message, where=address, hint="write http://HOST:PORT") from err
        if not host:
            message = "no address: it names no host"
            raise InputError(message, where=address, hint="write http://HOST:PORT")
        self.address = address
        self._headers = _headers(parts.username, parts.password)
        self._retries = int(_number("MLFLOW_HTTP_REQUEST_MAX_RETRIES", RETRIES))
        self._pool = _pool(parts.scheme, host)
        self._reached = self._gone = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        """Close the kept connections. Requests are still answered afterwards."""
        self._pool.clear()

    def get(self, path: str, query: Mapping[str, Any] | None = None, *, retries: int | None = None) -> dict[str, Any]:
        """The JSON object that a GET answers with."""
        return self._json(*self._request("GET", path, query, retries=retries), path)

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The JSON object that a search answers with; it is asked again on failure, so only use it for what changes nothing."""
        return self._json(*self._request("POST", path, body=orjson.dumps(body)), path)

    def download(self, path: str, query: Mapping[str, Any] | None = None, *, limit: int | None = None, last: int | None = None) -> bytes:
        """The bytes that a GET answers with, or the first of them. `last` asks for as many of the end; a server may give the whole all the same."""
        headers = {} if last is None else {"Range": f"bytes=-{last}", "Accept-Encoding": "identity"}
        for tried in range(1, self._retries + 2):
            try:
                return self._request("GET", path, query, limit=limit, headers=headers)[0]
            except _CutError as err:
                if tried > self._retries:
                    raise self._broken(err.cut, path) from err.cut
                time.sleep(min(BACKOFF_S * 2**tried, LONGEST_WAIT_S))
        raise AssertionError

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

    def _request(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None = None,
        *,
        body: bytes | None = None,
        retries: int | None = None,
        limit: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[bytes, str]:
        """Body and content type of the answer. Asks again when the server is busy or the connection breaks."""
        try:
            answer = self._pool.request(
                method,
                f"{self.address}{path}" + (f"?{urlencode(query, doseq=True)}" if query else ""),
                body=body,
                headers={**self._headers, **(headers or {}), **({} if body is None else {"Content-Type": "application/json"})},
                retries=self._tries(retries),
                redirect=False,
                preload_content=limit is None,
            )
        except HTTPError as err:
            raise self._broken(err, path) from err
        try:
            content = answer.data if limit is None else answer.read(limit)
            answer.close()  # what was not asked for stays unread
        except (ProtocolError, LateError) as err:
            raise _CutError(err) from err
        except HTTPError as err:
            raise self._broken(err, path) from err
        self._reached, self._gone = True, False
        if answer.status < 300:
            return content, answer.headers.get("Content-Type") or ""
        if answer.status not in TRANSIENT:
            raise self._refused(answer.status, answer.headers.get("Location"), content, path)
        tried = len(answer.retries.history) + 1 if answer.retries else 1
        message = f"{path}: HTTP {answer.status} {_message(content)}".strip() + (f" ({tried} times)" if tried > 1 else "")
        raise BrokenError(message, where=self.address, hint=_LOG_HINT)

    def _tries(self, retries: int | None) -> urllib3.Retry:
        allowed = 0 if self._gone else self._retries if retries is None else min(retries, self._retries)
        return urllib3.Retry(
            allowed,
            connect=allowed if self._reached else min(allowed, _FIRST_RETRIES),
            read=allowed if self._reached else min(allowed, _FIRST_RETRIES),
            redirect=False,
            other=0,  # such as a certificate that cannot be verified
            allowed_methods=None,
            status_forcelist=TRANSIENT,
            raise_on_status=False,
            backoff_factor=BACKOFF_S,
            backoff_jitter=BACKOFF_S / 4,  # so that clients do not come back all at once
            backoff_max=LONGEST_WAIT_S,
            retry_after_max=LONGEST_WAIT_S,
        )

    def _broken(self, err: HTTPError, path: str) -> InputError:
        if not isinstance(err, MaxRetryError | ProtocolError | LateError):  # such as a compression that is broken
            return BrokenError(f"{path}: {_line(err)}", where=self.address, hint=_LOG_HINT)
        cause: BaseException = (err.reason if isinstance(err, MaxRetryError) else None) or err
        while isinstance(inner := cause.__cause__ or (cause.args[-1] if cause.args else None), Exception):
            cause = inner
        if isinstance(cause, ssl.SSLCertVerificationError):
            message = f"its certificate cannot be verified: {cause.verify_message}"
            hint = "set MLFLOW_TRACKING_SERVER_CERT_PATH, or MLFLOW_TRACKING_INSECURE_TLS=true to go without"
            return InputError(message, where=self.address, hint=hint)
        self._gone = True
        hint = "run the command again when it is back" if self._reached else _SERVER_HINT
        message = f"{'does not answer' if self._reached else 'cannot be reached'}: {_said(cause)}"
        return GoneError(message, where=self.address, hint=hint)

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

    def _refused(self, status: int, location: str | None, content: bytes, path: str) -> InputError:
        said = _message(content)
        if status in {401, 403}:
            return InputError(
                f"HTTP {status}: it wants other credentials{f' ({said})' if said else ''}", where=self.address, hint=_LOGIN_HINT
            )
        if 300 <= status < 400:
            place = urlsplit(location or "")
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
    token = os.environ.get("MLFLOW_TRACKING_TOKEN", "").strip()
    if user:
        headers["Authorization"] = _basic(user, password)
    elif token:
        headers["Authorization"] = f"Bearer {token}"
    workspace = os.environ.get("MLFLOW_WORKSPACE")
    if workspace:
        headers["X-MLFLOW-WORKSPACE"] = workspace
    return headers


def _basic(user: str, password: str | None) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password or ''}".encode()).decode()


def _pool(scheme: str, host: str) -> urllib3.PoolManager:
    """Connections to a host, through the proxy that the environment names for it."""
    settings: dict[str, Any] = {
        "maxsize": _CONNECTIONS,
        "timeout": _number("MLFLOW_HTTP_REQUEST_TIMEOUT", TIMEOUT_S) or None,
        "ssl_context": _tls() if scheme == "https" else None,
    }
    proxy = getproxies().get(scheme)
    if not proxy or proxy_bypass(host):
        return urllib3.PoolManager(**settings)
    parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    login = {"Proxy-Authorization": _basic(unquote(parts.username), unquote(parts.password or ""))} if parts.username else None
    shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    try:
        return urllib3.ProxyManager(shown, proxy_headers=login, **settings)
    except HTTPError as err:
        message = f"a proxy that cannot be used: {shown}"
        raise InputError(message, hint="see HTTP_PROXY, HTTPS_PROXY, NO_PROXY") from err


def _tls() -> ssl.SSLContext:
    certificates = os.environ.get("MLFLOW_TRACKING_SERVER_CERT_PATH")
    own = os.environ.get("MLFLOW_TRACKING_CLIENT_CERT_PATH")
    insecure = os.environ.get("MLFLOW_TRACKING_INSECURE_TLS", "").lower() in _TRUE
    try:
        context = ssl.create_default_context(cafile=None if insecure else certificates)
        if own:
            context.load_cert_chain(own)
    except (OSError, ssl.SSLError) as err:
        message = f"certificate that cannot be read: {err}"
        raise InputError(
            message, where=own or certificates, hint="see MLFLOW_TRACKING_SERVER_CERT_PATH, MLFLOW_TRACKING_CLIENT_CERT_PATH"
        ) from err
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        urllib3.disable_warnings(InsecureRequestWarning)  # it was asked for
    return context


def _number(name: str, otherwise: float) -> float:
    """A number of the environment; one that is none, or has no end, counts as not given."""
    told = number(os.environ.get(name)).value
    return otherwise if told is None else max(told, 0.0)


def _message(content: bytes) -> str:
    """What an error's body says, in one line."""
    try:
        told = orjson.loads(content)
    except ValueError:
        told = None
    if isinstance(told, dict) and isinstance(told.get("message"), str):
        return _line(told["message"])
    return "" if content.lstrip()[:1] == b"<" else _line(content)


def _said(cause: BaseException) -> str:
    if isinstance(cause, TimeoutError | LateError):
        return "no answer in time"
    if isinstance(cause, http.client.IncompleteRead):
        return "the answer was cut off"
    if isinstance(cause, http.client.BadStatusLine) and not isinstance(cause, http.client.RemoteDisconnected):
        return "the answer is no HTTP"
    return _line(getattr(cause, "strerror", None) or cause or type(cause).__name__)


def _line(told: object) -> str:
    return " ".join(shorten(told if isinstance(told, bytes) else str(told)).split())[:200]


def batches_of(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    """Slices of a sequence."""
    return (items[start : start + size] for start in range(0, len(items), size))
