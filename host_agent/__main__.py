"""``python -m host_agent``: the agent of one host."""

from __future__ import annotations

import logging
from pathlib import Path

import click

from host_agent.config import AgentConfig, Endpoint
from plain.imports import imports_to_keep


def run(config: AgentConfig) -> None:
    """Run one agent until SIGTERM or SIGINT."""
    with imports_to_keep():
        from host_agent.shell import Agent  # the command line describes this command where no agent can run
    Agent(config).run()


@click.command(
    "agent",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Example:  capstan agent --host h1 --interface eth1 --underlay-ip 10.0.1.1 "
    "--overlay 10.128.1.1/9 --controller tls:192.0.2.1:6654 --ca ca.pem --token-file token",
)
@click.option("--host", required=True, help="Name of this host, unique in the fabric.")
@click.option("--interface", required=True, help="Interface towards the fabric.")
@click.option("--underlay-ip", required=True, help="IPv4 address of that interface.")
@click.option(
    "--overlay", required=True, multiple=True, help="Overlay address with prefix length; repeatable."
)
@click.option("--controller", required=True, help="unix:PATH or tls:HOST:PORT.")
@click.option(
    "--token-file", required=True, type=click.Path(path_type=Path), help="File of the shared token."
)
@click.option("--ca", type=click.Path(path_type=Path), help="Certificate authority of the controller (tls).")
@click.option("--tun", default="capstan0", show_default=True, help="Name of the TUN device.")
@click.option(
    "--keep-tun",
    is_flag=True,
    help="Leave the TUN device where this agent is killed: connections wait for the next one, which takes it over.",
)
@click.option("--underlay-mtu", default=1500, show_default=True, help="MTU of the fabric, bytes.")
@click.option(
    "--congestion-control",
    help="Congestion control of TCP connections over the overlay (default: the kernel's).",
)
@click.option("--no-offloads", is_flag=True, help="Read and write the TUN device a packet at a time.")
@click.option(
    "--path-policy",
    type=click.Path(path_type=Path),
    help="Python file with a path policy of your own, for schemes with `entropy: file`.",
)
@click.option("--seed", type=int, help="Seed of all randomness (default: the system's).")
@click.option(
    "--log-level",
    default="info",
    show_default=True,
    type=click.Choice(["debug", "info", "warning", "error"], case_sensitive=False),
    help="Least severe log messages to print.",
)
def agent_command(
    *,
    host: str,
    interface: str,
    underlay_ip: str,
    overlay: tuple[str, ...],
    controller: str,
    token_file: Path,
    ca: Path | None,
    tun: str,
    keep_tun: bool,
    underlay_mtu: int,
    congestion_control: str | None,
    no_offloads: bool,
    path_policy: Path | None,
    seed: int | None,
    log_level: str,
) -> None:
    """Run a host agent alone, for a host of a fabric that is not our lab."""
    logging.basicConfig(level=log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    try:
        token = token_file.read_text().strip()
    except OSError as error:
        raise click.ClickException(f"token file {token_file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise click.ClickException(f"token file {token_file} holds no text") from None
    if not token:
        raise click.ClickException(f"token file {token_file} is empty: copy the controller's agents-token")
    try:
        run(
            AgentConfig(
                host=host,
                interface=interface,
                underlay_ip=underlay_ip,
                overlay=overlay,
                controller=Endpoint.parse(controller),
                token=token,
                ca=ca,
                tun=tun,
                underlay_mtu=underlay_mtu,
                congestion_control=congestion_control,
                offloads=not no_offloads,
                seed=seed,
                path_policy=path_policy,
                keep_tun=keep_tun,
            )
        )
    except FileNotFoundError as error:
        raise click.ClickException(
            f"{error.filename} is not on this machine; ip is of the package iproute2"
        ) from None
    except (OSError, ValueError) as error:
        raise click.ClickException(str(error)) from None


if __name__ == "__main__":
    agent_command()
