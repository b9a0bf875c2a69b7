"""Applications that share a fabric: each with its own flow sizes, port, hosts and part of the load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from capstan_client.errors import FieldError
from workloads.description import Application, Endpoint, Flows
from workloads.sizes import SizeDistribution, SizesError, describe_sizes, distribution


class ApplicationsError(FieldError):
    """Applications that cannot be. path: below a workload's flows."""


@dataclass(frozen=True, slots=True)
class Part:
    """What one application contributes. share: of all flows, 0..1 (`Application.share` is of the load)."""

    application: Application
    sizes: SizeDistribution
    share: float


def parts(flows: Flows) -> tuple[Part, ...]:
    """Return one part for each application; flows with `sizes` of their own are one application without a name.

    Of a load, application i offers the part p_i; with a mean size of m_i that is p_i / m_i of the flows.

    Raises:
        ApplicationsError: neither or both of sizes and applications, a name twice, or sizes that cannot be.
    """
    if (flows.sizes is None) == (not flows.applications):
        raise ApplicationsError("exactly one of sizes and applications is needed")
    given = flows.applications if flows.sizes is None else (Application("", flows.sizes),)
    names: set[str] = set()
    drawn: list[SizeDistribution] = []
    for index, application in enumerate(given):
        where: tuple[str | int, ...] = ("applications", index) if flows.applications else ()
        if application.name in names:
            raise ApplicationsError(
                f"{application.name!r} is there already; names must differ", *where, "name"
            )
        names.add(application.name)
        if not application.share > 0:
            raise ApplicationsError(f"share must be above 0, not {application.share}", *where, "share")
        try:
            drawn.append(distribution(application.sizes))
        except SizesError as error:
            raise ApplicationsError(str(error), *where, "sizes") from None
    if flows.changes_port is not None:
        changing = [
            application
            for application in given
            if application.name == flows.changes_port and application.port is not None
        ]
        if not changing or not flows.lead_in_s > 0:
            raise ApplicationsError(
                f"{flows.changes_port!r} must be an application with a port, and lead_in_s above 0",
                "changes_port",
            )
    rates = [application.share / sizes.mean() for application, sizes in zip(given, drawn, strict=True)]
    total = sum(rates)
    return tuple(
        Part(application, sizes, rate / total)
        for application, sizes, rate in zip(given, drawn, rates, strict=True)
    )


def mean_bytes(mix: Sequence[Part]) -> float:
    """Return mean size of all flows in bytes."""
    return sum(part.share * part.sizes.mean() for part in mix)


def hosts_of(application: Application, hosts: Sequence[Endpoint]) -> list[Endpoint]:
    """Return the hosts that run an application. Raises ApplicationsError with the names that are not there."""
    if application.hosts is None:
        return list(hosts)
    missing = sorted(set(application.hosts) - {host.host for host in hosts})
    if missing:
        there = f"{hosts[0].host} to {hosts[-1].host}" if hosts else "none"
        raise ApplicationsError(f"the fabric has no {', '.join(missing)} (its hosts: {there})", "hosts")
    return [host for host in hosts if host.host in application.hosts]


def describe(flows: Flows) -> dict[str, object]:
    """Return what a run records of its flow sizes, as `describe_sizes`; of several applications, of each of them
    too."""
    mix = parts(flows)
    if flows.sizes is not None:
        return dict(describe_sizes(flows.sizes))
    load = sum(part.application.share for part in mix)
    return {
        "kind": "applications",
        "table": None,
        "source": None,
        "scale": 1.0,
        "mean_bytes": round(mean_bytes(mix), 1),
        "applications": [
            {
                "name": part.application.name,
                "port": part.application.port,
                "hosts": None if part.application.hosts is None else list(part.application.hosts),
                "share_of_load": round(part.application.share / load, 4),
                "share_of_flows": round(part.share, 4),
                **describe_sizes(part.application.sizes),
            }
            for part in mix
        ],
    }
