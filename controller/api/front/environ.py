"""From a request to the strings of its WSGI environment (PEP 3333)."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import unquote_to_bytes

import h11

ALONE: Final = {"content-type": "CONTENT_TYPE", "content-length": "CONTENT_LENGTH"}


def environ_of(request: h11.Request, peer: Any, here: Any, scheme: str = "http") -> dict[str, str]:
    """Return what a request's head says; what its body is, `set_length` says once it is whole.

    scheme: "https" where it came by TLS. peer, here: socket addresses, (host, port, …); None: not known any more. All
    texts are bytes as Latin-1.
    """
    target = request.target.decode("latin-1")
    absolute, mark, rest = target.partition("://")
    if mark and absolute.lower() in ("http", "https"):  # the absolute form, which proxies use
        target = "/" + rest.partition("/")[2]
    (host, port), (name_here, port_here) = (
        tuple(address[:2]) if address else ("", 0) for address in (peer, here)
    )
    path, _, query = target.partition("?")
    environ = {
        "REQUEST_METHOD": request.method.decode("latin-1"),
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(path.encode("latin-1")).decode("latin-1"),
        "QUERY_STRING": query,
        "REQUEST_URI": target,
        "SERVER_NAME": name_here,
        "SERVER_PORT": str(port_here),
        "SERVER_PROTOCOL": f"HTTP/{request.http_version.decode('latin-1')}",
        "REMOTE_ADDR": host,
        "REMOTE_PORT": str(port),
        "wsgi.url_scheme": scheme,
    }
    for raw_name, raw_value in request.headers:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        if "_" in name:  # it would look like another one
            continue
        key = ALONE.get(name) or "HTTP_" + name.upper().replace("-", "_")
        if key in environ:
            value = f"{environ[key]}{'; ' if name == 'cookie' else ', '}{value}"
        environ[key] = value
    return environ


def head_bytes(request: h11.Request) -> int:
    """Return how long a request's head is, without blanks around values."""
    line = len(request.method) + len(request.target) + len(" HTTP/1.1\r\n ")
    return line + sum(len(name) + len(value) + len(": \r\n") for name, value in request.headers)


def set_length(environ: dict[str, str], body_bytes: int) -> None:
    """Say how long the body is that is here as a whole."""
    environ.pop("HTTP_TRANSFER_ENCODING", None)
    if body_bytes or "CONTENT_LENGTH" in environ:
        environ["CONTENT_LENGTH"] = str(body_bytes)
