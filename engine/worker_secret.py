"""Which address of a lab's controller, in a worker's report, may be asked: else who operates the API could name any."""

from __future__ import annotations

import hmac
from ipaddress import ip_address
from urllib.parse import urlsplit

from engine.worker_report import WorkerReportBody


def believed_api(report: WorkerReportBody, secret: bytes) -> str | None:
    """Return the report's address if it is of this machine, and its worker shows *secret*."""
    shown = report.secret.encode(errors="surrogatepass")
    if report.api is None or not _is_here(report.api) or not hmac.compare_digest(shown, secret):
        return None
    return report.api


def _is_here(api: str) -> bool:
    """Return whether *api* is a plain HTTP address of this machine's loopback."""
    try:
        parts = urlsplit(api)
        return parts.scheme == "http" and ip_address(parts.hostname or "").is_loopback and bool(parts.port)
    except ValueError:
        return False
