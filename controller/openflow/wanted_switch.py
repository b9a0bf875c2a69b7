"""One switch's wanted state in parts, so that a change computes and compares only what it may have changed."""

from __future__ import annotations

from controller.openflow.arp_probes import arp_probe_flows
from controller.openflow.choosing import choose_part, label_part
from controller.openflow.pipeline import (
    by_key,
    class_flows,
    classify_flows,
    deliver_flows,
    meters,
    queues_of,
)
from controller.openflow.punts import punt_flows, punt_meters
from controller.openflow.sources import source_flows
from controller.openflow.view import SwitchView
from controller.openflow.wanted import Difference, SwitchState, difference
from controller.schemes.scheme import Mode, Scheme

_EMPTY = SwitchState()


class WantedSwitch:
    """What a switch should hold (`want`), what it was sent, and the difference (`take`)."""

    def __init__(self, dpid: int) -> None:
        self.view = SwitchView(dpid, leaf=False)
        self._scheme: Scheme | None = None
        self._mode: Mode = "off"
        self._sent: dict[str, SwitchState] = {}
        self._parts: dict[str, SwitchState] = {}
        self._make_punts()
        self._make_classify(None)
        self._make_deliver()
        self._make_sources()
        self._make_arp_probes()
        self._make_class()
        self._make_choose()
        self._make_labels()

    def want(self, view: SwitchView, scheme: Scheme | None, mode: Mode) -> None:
        """Take a new view, scheme and mode; only the parts that depend on what changed are made anew."""
        if scheme is self._scheme and mode == self._mode and view == self.view:
            return  # most often: where one of many switches has changed
        before, self.view = self.view, view
        if before.ports != view.ports:
            self._make_punts()
        if (before.local, before.remote) != (view.local, view.remote):
            self._make_deliver()
            self._make_sources()
        if (before.leaf, before.local, before.remote) != (view.leaf, view.local, view.remote):
            self._make_arp_probes()
        labels = self._scheme is not None and self._scheme.labels
        if queues_of(self._scheme) != queues_of(scheme):
            self._make_classify(scheme)
        if before.towards != view.towards:
            self._make_choose()
        if before.towards != view.towards or labels != (scheme is not None and scheme.labels):
            self._make_labels(scheme)
        if (self._scheme, self._mode) != (scheme, mode) or _class_inputs(before) != _class_inputs(view):
            self._scheme, self._mode = scheme, mode
            self._make_class()

    def want_mode(self, mode: Mode) -> None:
        """Take a new mode: only the entries of `Table.CLASS` change."""
        if mode != self._mode:
            self._mode = mode
            self._make_class()

    def take(self) -> Difference:
        """Return what turns what was sent into what is wanted; from now on that counts as sent."""
        changes = [
            difference(self._sent.get(name, _EMPTY), part)
            for name, part in self._parts.items()
            if self._sent.get(name) is not part
        ]
        self._sent = dict(self._parts)
        return changes[0] if len(changes) == 1 else _together(changes)

    def take_whole(self) -> Difference:
        """Return the whole wanted state, for a switch of which nothing is known."""
        self._sent = {}
        return self.take()

    def state(self) -> SwitchState:
        """Return the whole wanted state."""
        parts = self._parts.values()
        return SwitchState(
            flows={key: flow for part in parts for key, flow in part.flows.items()},
            groups={key: group for part in parts for key, group in part.groups.items()},
            meters={key: meter for part in parts for key, meter in part.meters.items()},
        )

    def _make_punts(self) -> None:
        ports = self.view.ports
        self._parts["punts"] = SwitchState(by_key(punt_flows(ports)), meters=punt_meters(ports))

    def _make_classify(self, scheme: Scheme | None) -> None:
        self._parts["classify"] = SwitchState(by_key(classify_flows(queues_of(scheme))))

    def _make_deliver(self) -> None:
        self._parts["deliver"] = SwitchState(by_key(deliver_flows(self.view.local, self.view.remote)))

    def _make_sources(self) -> None:
        self._parts["sources"] = SwitchState(by_key(source_flows(self.view.local, self.view.remote)))

    def _make_arp_probes(self) -> None:
        self._parts["arp probes"] = SwitchState(by_key(arp_probe_flows(self.view)))

    def _make_class(self) -> None:
        flows = class_flows(self.view, self._scheme, self._mode)
        self._parts["class"] = SwitchState(by_key(flows), meters=meters(self.view, self._scheme))

    def _make_choose(self) -> None:
        groups, flows = choose_part(self.view.dpid, self.view.towards)
        self._parts["choose"] = SwitchState(by_key(flows), {group.id: group for group in groups})

    def _make_labels(self, scheme: Scheme | None = None) -> None:
        groups, flows = label_part(self.view.dpid, self.view.towards, scheme)
        self._parts["labels"] = SwitchState(by_key(flows), {group.id: group for group in groups})


def _class_inputs(view: SwitchView) -> tuple[object, ...]:
    return (view.leaf, view.chooses, view.guarded, view.closed, sorted({host.port for host in view.local}))


def _together(changes: list[Difference]) -> Difference:
    """Return the changes as one: their parts have no entry in common."""
    return Difference(
        add_meters=tuple(item for change in changes for item in change.add_meters),
        add_groups=tuple(item for change in changes for item in change.add_groups),
        add_flows=tuple(item for change in changes for item in change.add_flows),
        delete_flows=tuple(item for change in changes for item in change.delete_flows),
        delete_groups=tuple(item for change in changes for item in change.delete_groups),
        delete_meters=tuple(item for change in changes for item in change.delete_meters),
    )
