"""A lab's nodes: Mininet's objects, and work done inside their namespaces."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any, Final, TypeVar

from mininet.net import VERSION, Mininet
from mininet.topo import Topo

from topologies.namespaces import Namespace, disable_offloads, run_batch, write_sysctls
from topologies.ovs import OvsSwitch, SwitchSetting
from topologies.processes import end_processes
from topologies.wiring import LabHost, LabInterface, LabLink, NamespaceSetup

MININET_VERSION: Final[str] = VERSION
"""By Mininet's own word: `.venv` has a link to it, without the metadata of a package."""
MANAGER: Final = "mgmt"
"""Name of the node that holds the management network's bridge; it is no host of the fabric."""
REST_S: Final = 2.0
"""A command in a namespace takes milliseconds: what is not done by then hangs."""
LATE_S: Final = 0.2
"""How often what workers began too late is ended, until they have done."""
T = TypeVar("T")


class Nodes:
    """Mininet's network and, besides, the management network's node; a thread pool to work in all of them.

    Interfaces are named by Mininet's objects but not made: that is for batches, see wiring.
    The management network's node is there from the beginning, the fabric's with `build`.
    """

    def __init__(self, lab_id: str) -> None:
        self.lab_id = lab_id
        self.net: Any = None
        self._namespaces: dict[str, Namespace] = {}
        self._begun: set[Future[Any]] = set()
        self._workers = ThreadPoolExecutor(8, thread_name_prefix=f"capstan-{lab_id}")
        self.manager: LabHost | None = LabHost(MANAGER, lab_id=lab_id)

    def build(self, topo: Topo, setting: SwitchSetting) -> None:
        """Make a namespace for each node of *topo*."""
        # Mininet's own init() would change a dozen sysctls of the machine and never put them back.
        Mininet.inited = True
        self.net = Mininet(
            topo=topo,
            switch=partial(OvsSwitch, setting=setting),
            host=partial(LabHost, lab_id=self.lab_id),
            link=LabLink,
            intf=LabInterface,
            controller=None,
            build=False,
        )
        self.net.build()
        for node in self._all():
            self._namespaces[node.name] = Namespace(node.pid)

    def namespace(self, node: str) -> Namespace:
        """Return the network namespace of a node. Raises KeyError."""
        return self._namespaces[node]

    def inside(self, node: str, work: Callable[[], T]) -> Future[T]:
        """Have a worker thread do *work* in a node's namespace; return the future of its result. Raises KeyError."""
        namespace = self._namespaces[node]

        def enter_and_work() -> T:
            with namespace.entered():
                return work()

        future = self._workers.submit(enter_and_work)
        self._begun.add(future)
        future.add_done_callback(self._begun.discard)
        return future

    def set_up(self, setups: dict[str, NamespaceSetup]) -> set[str]:
        """Set many namespaces up in parallel; return the sysctls that could not be set."""
        started = [self.inside(name, partial(_set_up_namespace, setup)) for name, setup in setups.items()]
        return {name for future in started for name in future.result()}

    def rest(self) -> None:
        """Drop what is not begun, finish what is being done; what hangs ends with the namespaces' processes."""
        self._workers.shutdown(wait=False, cancel_futures=True)
        wait(tuple(self._begun), timeout=REST_S)

    def forget(self) -> None:
        """Let go of the namespaces and of Mininet's shells, which have ended by now."""
        networks = {namespace.network for namespace in self._namespaces.values()}
        # On a busy machine a worker may begin its next program only now, after all others have been ended.
        while wait(tuple(self._begun), timeout=LATE_S).not_done:
            end_processes(self.lab_id, networks)
        self._workers.shutdown(wait=True)
        for namespace in self._namespaces.values():
            namespace.close()
        self._namespaces = {}
        for node in self._all():
            for table in (node.inToNode, node.outToNode):
                for descriptor in [number for number, owner in table.items() if owner is node]:
                    del table[descriptor]
            if isinstance(node, OvsSwitch) and node.namespace is not None:
                node.namespace.close()
            node.cleanup()
        self.net = self.manager = None

    def _all(self) -> list[Any]:
        nodes: list[Any] = [self.manager] if self.manager is not None else []
        if self.net is not None:
            nodes += [*self.net.hosts, *self.net.switches]
        return nodes


def _set_up_namespace(setup: NamespaceSetup) -> list[str]:
    refused = write_sysctls(setup.sysctls)
    run_batch("ip", setup.ip_lines)
    for interface in setup.offloads_off:
        disable_offloads(interface)
    run_batch("tc", setup.tc_lines)
    return refused
