"""``python -m controller``: the controller alone. `capstan serve` has the same options, and the engine beside it."""

from __future__ import annotations

import gc
import ipaddress
import logging
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

if TYPE_CHECKING:
    from controller.api.front.limits import TlsFiles
    from controller.app import MakeExtension, Settings
    from controller.openflow.tls import SwitchTls

from capstan_client.errors import CapstanError
from controller.agents.listeners import TcpListener
from plain.finite_range import FiniteRange
from plain.imports import imports_to_keep
from protocol.packet_time import LINK_RATE_MBPS, packet_time_s

Command = TypeVar("Command", bound=Callable[..., Any])
COLLECTIONS: Final = (1000, 10, 100)
"""`gc.set_threshold`: Python looks at all objects, while every thread waits, once in a million more of them.

By default it is once in 70 000: 6 to 15 ms for what switches with 4000 ports make, in which no mode signal is read.
Young ones are looked at in half a millisecond.
"""


OPTIONS: Final = (
    click.option(
        "--data",
        default="capstan-data",
        show_default=True,
        type=click.Path(path_type=Path),
        help="Directory that keeps scheme, members, tokens and database over restarts; made if missing.",
    ),
    click.option(
        "--database",
        envvar="CAPSTAN_DATABASE",
        help="SQLAlchemy URL (default: SQLite in the data directory) [env: CAPSTAN_DATABASE]. A password in it shows "
        "in lists of processes: use the variable.",
    ),
    click.option(
        "--openflow",
        default="127.0.0.1:6653",
        show_default=True,
        help="ADDRESS:PORT for switches. One that is not loopback needs TLS: --switch-authority, --certificate, --key.",
    ),
    click.option(
        "--switch-authority",
        type=click.Path(path_type=Path),
        help="Certificates of the authorities that sign switches' certificates, PEM: switches connect by TLS then.",
    ),
    click.option(
        "--openflow-without-tls",
        is_flag=True,
        help="Let switches connect in clear to an --openflow that is not loopback: only where nothing else reaches it.",
    ),
    click.option(
        "--switches",
        type=click.Path(path_type=Path),
        help="File of the switches that may connect: a datapath id a line, and the name in its certificate if it must "
        "show one (default: all).",
    ),
    click.option(
        "--api",
        default="127.0.0.1:8080",
        show_default=True,
        help="ADDRESS:PORT of the REST API. One that is not loopback needs TLS: --api-certificate, --api-key.",
    ),
    click.option(
        "--api-certificate",
        type=click.Path(path_type=Path),
        help="Certificate of the API for its address, PEM: clients connect by https then.",
    ),
    click.option("--api-key", type=click.Path(path_type=Path), help="Its key, PEM."),
    click.option(
        "--api-without-tls",
        is_flag=True,
        help="Serve an --api that is not loopback in clear: only where nothing else reads that network, or behind a "
        "proxy with TLS.",
    ),
    click.option(
        "--api-without-token",
        is_flag=True,
        help="Ask for no token, and no TLS, at an --api that is not loopback: only where no other user reaches it, as "
        "a container whose port is published on loopback.",
    ),
    click.option(
        "--agents-socket", type=click.Path(path_type=Path), help="Unix socket for agents of this machine."
    ),
    click.option("--agents-tls", help="ADDRESS:PORT for agents of other machines."),
    click.option(
        "--certificate",
        type=click.Path(path_type=Path),
        help="Our certificate for switches and --agents-tls, PEM.",
    ),
    click.option("--key", type=click.Path(path_type=Path), help="Its key, PEM."),
    click.option(
        "--token-file", type=click.Path(path_type=Path), help="Token shared with the agents; made if missing."
    ),
    click.option(
        "--agent-host",
        "agent_hosts",
        multiple=True,
        metavar="HOST",
        help="A host that may have an agent, with a token of its own, kept (made if missing) in agent-tokens/HOST in "
        "the data directory; again for each. Without it all agents share --token-file, and each may take another's "
        "name.",
    ),
    click.option(
        "--authenticate-datagrams",
        is_flag=True,
        help="Have agents authenticate what they send each other, by keys of each pair that are renewed every hour. "
        "Agents and controller begin with it together.",
    ),
    click.option("--scheme", default="ecmp", show_default=True, help="Scheme to begin with."),
    click.option(
        "--link-rate-mbps", default=LINK_RATE_MBPS, show_default=True, help="Slowest fabric link, Mbit/s."
    ),
    click.option("--lab", is_flag=True, help="This fabric is a lab: faults may be injected by the API."),
    click.option(
        "--opens-on-tour", is_flag=True, help="Let the page's bare address lead to the tour of the schemes."
    ),
    click.option(
        "--link-samples-per-s",
        default=4.0,
        show_default=True,
        type=FiniteRange(0.1, 50),
        help="Samples a second of what links carry, while a client watches.",
    ),
    click.option(
        "--keep-results-gib",
        default=32.0,
        show_default=True,
        type=FiniteRange(0, 10**9, min_open=True),  # GiB: beyond any disk, and in bytes still a number
        help="Refuse more results of experiments while the database has more than so many GiB.",
    ),
    click.option(
        "--keep-records-days",
        type=FiniteRange(0, min_open=True),
        help="Delete flow records of experiments that ended earlier (default: never); their results stay.",
    ),
    click.option(
        "--log-level",
        default="info",
        show_default=True,
        type=click.Choice(["debug", "info", "warning", "error"], case_sensitive=False),
        help="Least severe log messages to print.",
    ),
)
"""Of every command that runs a controller."""


def controller_options(command: Command) -> Command:
    """Return a command decorated with `OPTIONS`, in their order."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def run_controller(
    extension: Callable[[], MakeExtension | None] = lambda: None,
    *,
    data: Path,
    database: str | None,
    openflow: str,
    switch_authority: Path | None,
    openflow_without_tls: bool,
    switches: Path | None,
    api: str,
    api_certificate: Path | None,
    api_key: Path | None,
    api_without_tls: bool,
    api_without_token: bool,
    agents_socket: Path | None,
    agents_tls: str | None,
    certificate: Path | None,
    key: Path | None,
    token_file: Path | None,
    agent_hosts: tuple[str, ...],
    authenticate_datagrams: bool,
    scheme: str,
    link_rate_mbps: float,
    lab: bool,
    opens_on_tour: bool,
    link_samples_per_s: float,
    keep_results_gib: float,
    keep_records_days: float | None,
    log_level: str,
) -> None:
    """Run a controller until a signal ends it, with the values of `OPTIONS`.

    extension: makes what the API serves besides; called once the options are known to be right.

    Raises:
        click.ClickException: an option is wrong, or something cannot be had.
    """
    with imports_to_keep():
        import controller.shell.shell  # noqa: F401 with os-ken, which a controller without switches does not need
        from controller.app import Settings  # a second's work, which --help need not wait for
    gc.set_threshold(*COLLECTIONS)
    logging.basicConfig(level=log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("alembic").setLevel(logging.WARNING)
    if not 0 < link_rate_mbps < math.inf:
        raise click.BadParameter("must be above 0 Mbit/s", param_hint="--link-rate-mbps")
    openflow_address, openflow_port = _address(openflow, "--openflow")
    api_address, api_port = _address(api, "--api")
    settings = Settings(
        data=data,
        database_url=database,
        openflow_address=openflow_address,
        openflow_port=openflow_port,
        openflow_tls=_switch_tls(
            openflow_address,
            without_tls=openflow_without_tls,
            authority=switch_authority,
            certificate=certificate,
            key=key,
        ),
        switches=switches,
        api_address=api_address,
        api_port=api_port,
        api_tls=_api_tls(api_address, api_without_tls or api_without_token, api_certificate, api_key),
        api_without_token=api_without_token,
        agents_socket=agents_socket,
        agents_tcp=_agents_tcp(agents_tls, certificate, key),
        token_file=token_file,
        agent_hosts=agent_hosts,
        authenticate_datagrams=authenticate_datagrams,
        scheme=scheme,
        packet_time_s=packet_time_s(link_rate_mbps),
        lab=lab,
        opens_on_tour=opens_on_tour,
        links_every_s=1 / link_samples_per_s,
        extension=extension(),
        keep_results_bytes=round(keep_results_gib * (1 << 30)),
        keep_records_days=keep_records_days,
    )
    serve_to_end(settings)


def serve_to_end(settings: Settings) -> None:
    """Serve until a signal ends it, with files that are for our user alone. Raises click.ClickException."""
    from controller.app import serve

    mask = os.umask(0o077)  # results and names of hosts are not for all users of the machine
    try:
        serve(settings)
    except OSError as error:
        about = f"{error.filename}: " if error.filename is not None else ""
        raise click.ClickException(f"{about}{error.strerror or error}") from None
    except (CapstanError, ValueError) as error:
        raise click.ClickException(str(error)) from None
    finally:
        os.umask(mask)


def _agents_tcp(agents_tls: str | None, certificate: Path | None, key: Path | None) -> TcpListener | None:
    """Return where agents of other machines connect; None: nowhere. Raises click.UsageError."""
    if agents_tls is None:
        return None
    if certificate is None or key is None:
        raise click.UsageError("--agents-tls needs --certificate and --key")
    return TcpListener(*_address(agents_tls, "--agents-tls"), certificate, key)


def _switch_tls(
    address: str, *, without_tls: bool, authority: Path | None, certificate: Path | None, key: Path | None
) -> SwitchTls | None:
    """Return the TLS of switches that connect to *address*; None: OpenFlow in clear. Raises click.UsageError."""
    from controller.openflow.tls import SwitchTls

    if authority is None:
        if without_tls or ipaddress.ip_address(address).is_loopback:
            return None
        raise click.UsageError(
            f"switches that connect to {address} need TLS: give --certificate, --key and --switch-authority, "
            "or --openflow-without-tls where nothing but switches reaches that address"
        )
    if without_tls:
        raise click.UsageError(
            "--switch-authority asks for TLS, and --openflow-without-tls for none: leave one out"
        )
    if certificate is None or key is None:
        raise click.UsageError("--switch-authority needs --certificate and --key")
    return SwitchTls(certificate, key, authority)


def _api_tls(address: str, without_tls: bool, certificate: Path | None, key: Path | None) -> TlsFiles | None:
    """Return the TLS of an API at *address*; None: HTTP in clear. Raises click.UsageError."""
    from controller.api.front.limits import TlsFiles
    from controller.process.server_tls import CertificateError, server_context

    if certificate is None and key is None:
        if without_tls or ipaddress.ip_address(address).is_loopback:
            return None
        raise click.UsageError(
            f"an API at {address} needs TLS: give --api-certificate and --api-key, or --api-without-tls where nothing "
            "else reads that network"
        )
    if certificate is None or key is None:
        raise click.UsageError("--api-certificate and --api-key belong together: give both")
    try:
        server_context(certificate, key)
    except CertificateError as error:
        raise click.UsageError(str(error)) from None
    return TlsFiles(str(certificate.absolute()), str(key.absolute()))


def _address(text: str, option: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise click.BadParameter(f"{text!r} is not ADDRESS:PORT", param_hint=option)
    host = "127.0.0.1" if host == "localhost" else host.strip("[]")
    try:
        ipaddress.ip_address(host)
    except ValueError:
        raise click.BadParameter(
            f"{host!r} is not an IP address: give the one to listen at, or 0.0.0.0 for all", param_hint=option
        ) from None
    return host, int(port)


@click.command(
    "controller",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@controller_options
def controller_command(**options: Any) -> None:
    """Run the controller alone: experiments cannot be submitted to it."""
    run_controller(**options)


if __name__ == "__main__":
    controller_command()
