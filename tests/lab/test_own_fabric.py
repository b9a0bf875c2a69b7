"""docs/own-fabric.md, command by command: hand-made switches and hosts, `capstan serve` and `capstan agent` alone."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.lab.certificates_on_switches import (
    a_switch_of_another_authority_is_refused,
    authorities_are_replaced_without_a_lost_packet,
    changed_datagrams_are_dropped,
)
from tests.lab.lab_world import run_in_world
from tests.lab.openflow_rig import answers
from tests.waiting import PATIENCE_S, eventually

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "own-fabric.md"
PLACE = Path("/run/own-fabric")
SWITCHES = {"l1": 1, "l2": 2, "s1": 3, "s2": 4}
CABLES = [
    (("l1", "eth1"), ("s1", "eth1")),
    (("l1", "eth2"), ("s2", "eth1")),
    (("l2", "eth1"), ("s1", "eth2")),
    (("l2", "eth2"), ("s2", "eth2")),
    (("l1", "eth3"), ("h1", "eth1")),
    (("l2", "eth3"), ("h2", "eth1")),
]
MANAGEMENT = {"controller": 10, "l1": 21, "l2": 22, "s1": 23, "s2": 24, "h1": 31, "h2": 32}
BYTES = 3_000_000
RECEIVE = """
import hashlib, socket
listener = socket.create_server(("10.128.2.1", 5000))
print("listening", flush=True)
connection, _ = listener.accept()
digest = hashlib.sha256()
while data := connection.recv(65536):
    digest.update(data)
print(digest.hexdigest(), flush=True)
"""
SEND = f"""
import hashlib, socket
data = hashlib.shake_256(b"own fabric").digest({BYTES})
with socket.create_connection(("10.128.2.1", 5000), timeout=60) as connection:
    connection.sendall(data)
"""


def test_the_page_leads_to_a_fabric_that_works() -> None:
    done = run_in_world(sys.executable, __file__, "follow_the_page")
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-6000:]


def test_a_machine_without_tun_or_ip_gets_the_reason() -> None:
    done = run_in_world(sys.executable, __file__, "without_tun_or_ip")
    assert done.returncode == 0, done.stdout + done.stderr


def commands(section: str) -> list[tuple[str, str]]:
    """Return (machine, command) of the console blocks of one section of the page, continuation lines joined."""
    text = re.search(rf"^## {section}\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert text is not None, section
    found = []
    for block in re.findall(r"^```console\n(.*?)^```", text[1], re.MULTILINE | re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            machine, _, command = line.partition("# ")
            assert machine in MANAGEMENT, line
            found.append((machine, " ".join(command.split())))
    assert found, section
    return found


class Machines:
    """Network namespaces that stand for machines; each has a directory and, as a switch, an Open vSwitch."""

    def __init__(self) -> None:
        self.background: list[subprocess.Popen[bytes]] = []

    def build(self) -> None:
        run("ip", "link", "add", "management", "type", "bridge")
        run("ip", "link", "set", "management", "up")
        for machine, number in MANAGEMENT.items():
            (PLACE / machine).mkdir(parents=True)
            run("ip", "netns", "add", machine)
            self.run(machine, "ip link set lo up")
            end = f"m-{machine}"[:15]
            run("ip", "link", "add", end, "type", "veth", "peer", "name", "eth0", "netns", machine)
            run("ip", "link", "set", end, "master", "management", "up")
            self.run(machine, f"ip address add 192.0.2.{number}/24 dev eth0")
            self.run(machine, "ip link set eth0 up")
        for (one, port), (other, peer) in CABLES:
            cable = ("type", "veth", "peer", "name", peer, "netns", other)
            run("ip", "link", "add", port, "netns", one, *cable)
            self.run(one, f"ip link set {port} up")
            self.run(other, f"ip link set {peer} up")
        for switch in SWITCHES:
            place = PLACE / switch
            run("ovsdb-tool", "create", f"{place}/conf.db", "/usr/share/openvswitch/vswitch.ovsschema")
            self.start(switch, f"ovsdb-server {place}/conf.db --remote=punix:{place}/db.sock -vconsole:off")
            eventually(lambda place=place: answers(place / "db.sock"), "a database")
            self.start(switch, f"ovs-vswitchd unix:{place}/db.sock -vconsole:off --disable-system")

    def command(self, machine: str, command: str) -> list[str]:
        return ["ip", "netns", "exec", machine, "sh", "-c", f"cd {PLACE / machine} && {command}"]

    def environment(self, machine: str) -> dict[str, str]:
        place = str(PLACE / machine)
        return {
            **os.environ,
            "PATH": f"{ROOT}:{os.environ['PATH']}",
            "OVS_RUNDIR": place, "OVS_LOGDIR": place, "OVS_DBDIR": place,
        }  # fmt: skip

    def start(self, machine: str, command: str) -> subprocess.Popen[bytes]:
        """Run in the background; what it says goes to a log of the machine."""
        with open(PLACE / machine / "log", "ab") as log:
            process = subprocess.Popen(
                self.command(machine, f"exec {command}"),
                env=self.environment(machine),
                stdout=log,
                stderr=log,
            )
        self.background.append(process)
        return process

    def run(self, machine: str, command: str) -> str:
        done = subprocess.run(
            self.command(machine, command),
            env=self.environment(machine),
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
        assert done.returncode == 0, f"{machine}# {command}\n{done.stdout}{done.stderr}{self.logs()}"
        return done.stdout

    def logs(self) -> str:
        return "".join(
            f"--- {path.parent.name}\n{path.read_text(errors='replace')[-2000:]}"
            for path in PLACE.glob("*/log")
        )

    def follow(self, section: str, more: tuple[str, str] = ("", "")) -> str:
        """Run a section of the page; what ends in & goes into the background. Returns what the rest said.

        more: a word of commands, and what is written in its place.
        """
        said = ""
        for machine, command in commands(section):
            command = command.replace(*more)
            if command.endswith("&"):
                self.start(machine, command.rstrip("& "))
            else:
                said += self.run(machine, command)
        return said


def run(*argv: str) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(argv)}: {done.stderr}"


@contextmanager
def machines() -> Iterator[Machines]:
    one = Machines()
    try:
        one.build()
        yield one
    finally:
        for process in one.background:
            process.kill()


def health(fabric: Machines) -> dict[str, Any]:
    ((machine, command),) = [one for one in commands("Look at it") if "health" in one[1]]
    with suppress(AssertionError, ValueError):  # it may not listen yet
        document: dict[str, Any] = json.loads(fabric.run(machine, command))
        return document
    return {}


def follow_the_page() -> None:
    """Follow the whole page in a world of its own."""
    with machines() as fabric:
        fabric.follow("The controller", ("capstan serve", "capstan serve --authenticate-datagrams"))
        eventually(lambda: health(fabric).get("reasons") == ["no switch is connected"], "the controller")
        for host in ("h1", "h2"):
            for name in ("ca.pem", "capstan-data/agents-token"):
                shutil.copy2(PLACE / "controller" / name, PLACE / host)
        for switch in SWITCHES:
            for name in ("ca.pem", f"{switch}-privkey.pem", f"{switch}-cert.pem"):
                shutil.copy2(PLACE / "controller" / name, PLACE / switch)
        for switch, number in SWITCHES.items():
            for machine, command in commands("The switches"):
                assert machine == "l1"
                command = command.replace("l1", switch).replace("0" * 15 + "1", f"{number:016x}")
                if switch.startswith("s"):
                    command = command.replace(f" -- add-port {switch} eth3", "")
                fabric.run(switch, command)
        fabric.follow("The hosts")
        agents = fabric.background[-2:]
        wanted = {"ready": True, "switches": 4, "links": 4, "hosts": 2, "agents": 2, "scheme": "caps"}
        eventually(lambda: wanted.items() <= health(fabric).items(), lambda: health(fabric))

        said = fabric.follow("Look at it")
        assert said.count(" 0% packet loss") == 2, said
        assert '"applied_ms"' in said
        assert health(fabric)["scheme"] == "rps"

        receiver = subprocess.Popen(
            fabric.command("h2", f"exec {sys.executable} -c '{RECEIVE}'"),
            stdout=subprocess.PIPE,
            text=True,
        )
        assert receiver.stdout is not None
        assert receiver.stdout.readline() == "listening\n"
        fabric.run("h1", f"{sys.executable} -c '{SEND}'")
        wanted = hashlib.sha256(hashlib.shake_256(b"own fabric").digest(BYTES)).hexdigest()
        assert receiver.communicate(timeout=PATIENCE_S)[0].strip() == wanted
        body = """-X POST -H 'Content-Type: application/json' -d '{}'"""
        report = fabric.run("controller", f"curl -s {body} http://127.0.0.1:8080/api/v1/flows/report")
        flows = [
            flow
            for flow in json.loads(report)["hosts"]["h2"]
            if flow["side"] == "receiver" and flow["destination_port"] == 5000
        ]
        assert len(flows) == 1
        assert len(flows[0]["paths"]) == 2, "sprayed over both spines"

        changed_datagrams_are_dropped(fabric)
        a_switch_of_another_authority_is_refused(fabric, PLACE / "controller")
        authorities_are_replaced_without_a_lost_packet(fabric, PLACE / "controller", [*SWITCHES])

        for agent in agents:
            agent.send_signal(signal.SIGTERM)
        for agent in agents:
            assert agent.wait(60) == 0, fabric.logs()
        assert "capstan0" not in fabric.run("h1", "ip link")


def without_tun_or_ip() -> None:
    """Hide the program ip from one agent, and then the TUN device from this world only; check what errors say."""
    PLACE.mkdir()
    (PLACE / "token").write_text("a token of some length\n")
    run("ip", "address", "add", "10.0.1.1/16", "dev", "lo")
    agent = f"""agent --host h1 --interface lo --underlay-ip 10.0.1.1 --overlay 10.128.1.1/9
        --controller unix:{PLACE}/none --token-file {PLACE}/token"""
    done = subprocess.run(
        [sys.executable, "-m", "host_agent", *agent.split()[1:]],
        env={**os.environ, "PATH": str(PLACE)},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 1
    assert "Error: ip is not on this machine; ip is of the package iproute2" in done.stderr, done.stderr
    run("mount", "-t", "tmpfs", "none", "/dev/net")
    for words, said in (
        (agent, "cannot open /dev/net/tun: No such file or directory; load the module tun"),
        ("lab small", "'lab' needs /dev/net/tun: modprobe tun"),
    ):
        done = subprocess.run(
            [ROOT / "capstan", *words.split()], capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 1, done.stderr
        assert said in " ".join(done.stderr.split()), done.stderr
        assert "Traceback" not in done.stderr


if __name__ == "__main__":
    globals()[sys.argv[1]]()
