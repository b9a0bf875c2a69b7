"""From a scheme, in packet times, to the policy document of the agents, in seconds."""

from __future__ import annotations

from dataclasses import fields

from controller.schemes.scheme import ClassScheme, Priority, Scheme
from protocol.policy import ClassPolicy, CodingPolicy, CodingRules, Policy, ReleasePolicy
from protocol.priority import PriorityPolicy


def policy_for(scheme: Scheme, packet_time_s: float, version: int) -> Policy:
    """Return the policy document for agents under *scheme*.

    packet_time_s: time of 1500 B on the slowest fabric link, in seconds.

    Raises:
        PolicyError: a time that is fine in packet times is out of range in seconds; names the field.
    """
    policy = Policy(
        version=version,
        scheme=scheme.name,
        packet_time_s=packet_time_s,
        short_limit_bytes=scheme.limit_bytes,
        prior_knowledge=scheme.prior_knowledge,
        short=_class_policy(scheme.short, packet_time_s),
        long=_class_policy(scheme.long, packet_time_s),
        control=_class_policy(scheme.control, packet_time_s),
        priority=_priority_policy(scheme.priority),
        admission=None if scheme.admission is None else scheme.admission.policy(),
    )
    return Policy.from_dict(policy.to_dict())


def _priority_policy(priority: Priority | None) -> PriorityPolicy:
    if priority is None:
        return PriorityPolicy()
    return PriorityPolicy(priority.kind, priority.scaled(), priority.prediction is not None)


def _class_policy(scheme_class: ClassScheme, packet_time_s: float) -> ClassPolicy:
    coding = scheme_class.coding
    return ClassPolicy(
        path=scheme_class.path_settings(packet_time_s),
        coding=None
        if coding is None
        else CodingPolicy(
            **{item.name: getattr(coding, item.name) for item in fields(CodingRules)},
            sampling_s=None
            if coding.sampling_packet_times is None
            else coding.sampling_packet_times * packet_time_s,
            flush_s=coding.flush_packet_times * packet_time_s,
        ),
        release=None
        if scheme_class.release is None
        else ReleasePolicy(scheme_class.release.packet_times * packet_time_s, scheme_class.release.rule),
        priority=scheme_class.priority,
    )
