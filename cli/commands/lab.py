"""``capstan lab``, ``exec`` and ``scheme``: a fabric to work on."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli.console import fail, progress, results
from cli.live import hold, print_attempt, print_restart
from cli.privileges import need_lab, need_root
from cli.spec_options import path_policy_option
from cli.specs import load_scheme, load_spec, need_path_policy
from controller.schemes import loader
from controller.schemes.overrides import first_lab_problem
from experiments.spec.sweep import schemes_of_points
from topologies.cores import own_cores

if TYPE_CHECKING:
    from capstan_client.controller import ControllerClient


@click.command("lab", epilog="Examples:  ./capstan lab small --scheme caps    ./capstan lab my-fabric.yaml")
@click.argument("spec")
@click.option("--scheme", help="A scheme's name or file (default: the spec's first).")
@path_policy_option
def lab_command(spec: str, scheme: str | None, path_policy: Path | None) -> None:
    """Bring the fabric of SPEC up with one scheme, and hold it until Ctrl-C.

    Then ./capstan exec runs programs on its hosts, and ./capstan scheme switches the scheme. Experiments that are begun
    on its page run on this fabric, or in a lab beside it where they need another.
    """
    need_lab("lab")
    from engine.held_lab import HeldQueue
    from experiments.run.deployment import Deployment

    loaded = load_spec(spec, (scheme,) if scheme else (), lab=True)
    single = dataclasses.replace(loaded.spec, schemes=loaded.spec.schemes[:1])
    held = dataclasses.replace(single, sweep=())
    problem = first_lab_problem(schemes_of_points(held)) or single.fabric.lab_problem
    if problem is not None:
        fail(f"{spec}: {problem}")
    need_path_policy(held, path_policy)
    deployment = Deployment(
        single,
        on_stage=lambda text: progress.print(text, markup=False),
        path_policy=path_policy,
        on_restart=print_restart,
        queue=True,
    )
    with deployment:
        for notice in deployment.lab.notices:
            progress.print(f"note: {notice}", markup=False, soft_wrap=True)
        progress.print(
            f"scheme {single.schemes[0].label}; hosts {', '.join(deployment.lab.hosts)}", markup=False
        )
        with HeldQueue(deployment, own_cores().workers(), print_attempt) as queue:
            hold(deployment, queue)
        progress.print("taking the fabric down", markup=False)


@click.command(
    "exec",
    context_settings={"ignore_unknown_options": True},
    epilog="Examples:  ./capstan exec h1 -- ping -c 3 h5    ./capstan exec h5 -- iperf3 -s",
)
@click.argument("host")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("--lab", "lab_id", help="Id of the lab, if several are up.")
def exec_command(host: str, command: tuple[str, ...], lab_id: str | None) -> None:
    """Run COMMAND on HOST of the running lab, where host names (h1, h2, ...) resolve to overlay addresses.

    The exit code is that of the command.
    """
    need_root("exec")
    from topologies.exec import exec_in_lab

    sys.exit(exec_in_lab(host, list(command), lab_id))


@click.command("scheme", epilog="Examples:  ./capstan scheme caps    ./capstan scheme my-scheme.yaml")
@click.argument("name")
@click.option("--lab", "lab_id", help="Id of the lab, if several are up.")
def scheme_command(name: str, lab_id: str | None) -> None:
    """Switch the running lab to scheme NAME (a name or a file); no connection is lost."""
    need_root("scheme")
    scheme = load_scheme(name)
    with lab_client(lab_id) as client:
        packet_time_s = client.scheme()["packet_time_us"] / 1e6
        answer = client.set_scheme(loader.scheme_to_dict(scheme), packet_time_s=packet_time_s)
    results.print(
        f"{scheme.name} is in force on all switches and agents after {answer['applied_ms']:.0f} ms",
        markup=False,
    )


def lab_client(lab_id: str | None) -> ControllerClient:
    """Return a client of the controller of a running lab.

    Raises LabError if there is none of that name, or not one, or it has no controller of its own.
    """
    from capstan_client.controller import ControllerClient
    from topologies.registry import LabError, find_lab

    record = find_lab(lab_id)
    try:
        text = (record.run_dir / "controller" / "endpoints.json").read_text(encoding="utf-8")
    except FileNotFoundError:
        raise LabError(
            f"lab {record.lab_id} has no controller of its own",
            remedy="if it is still starting, try again in a moment; if another controller serves it, as of "
            "`show --controller`, ask that one by its page or API",
        ) from None
    return ControllerClient(json.loads(text)["api"])
