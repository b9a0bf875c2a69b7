"""Switches' connections by TLS: who gets in, what is logged of the others, and files that are replaced meanwhile."""

from __future__ import annotations

import contextlib
import shutil
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.control_plane import ControlPlane
from controller.openflow.allowed import AllowedSwitches, read_allowed_switches
from controller.openflow.errors import PeerError
from controller.openflow.tls import SwitchTls, SwitchTlsContexts, SwitchTlsError, TlsLayer
from controller.shell.shell import OpenFlowShell
from tests.unit.own_ca import Authority
from tests.unit.raw_switch import raw_switch
from tests.waiting import eventually

L1, L2 = 0x11, 0x12


@dataclass
class Site:
    """Files of a controller in *directory*, its authority, and switches' certificates."""

    directory: Path

    def __post_init__(self) -> None:
        self.authority = Authority(self.directory / "ca")
        self.files = SwitchTls(*(self.directory / name for name in ("cert.pem", "key.pem", "authority.pem")))
        self.install(self.authority, self.authority)

    def install(self, own: Authority, *trusted: Authority) -> None:
        """Put the controller's certificate by *own*, and the authorities that it trusts, into their places."""
        for source, place in zip(
            own.issue("controller"), (self.files.certificate, self.files.key), strict=True
        ):
            shutil.copy(source, place)
        self.files.authority.write_text("".join(one.certificate.read_text() for one in trusted))


def switch_context(authority: Authority, name: str | None) -> ssl.SSLContext:
    """Return a switch's TLS context; *name*: of its certificate, None if it has none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if name is not None:
        context.load_cert_chain(*authority.issue(name))
    return context


@contextlib.contextmanager
def serving(
    site: Site, allowed: AllowedSwitches | None = None
) -> Iterator[tuple[OpenFlowShell, ControlPlane]]:
    plane = ControlPlane(b"0123456789abcdef")
    shell = OpenFlowShell(
        plane, "127.0.0.1", 0, on_event=lambda event: None, allowed=allowed, tls=SwitchTlsContexts(site.files)
    )
    shell.start()
    try:
        yield shell, plane
    finally:
        shell.stop()


def connected(shell: OpenFlowShell, plane: ControlPlane) -> set[int]:
    return {one.dpid for one in shell.call(plane.snapshot).switches if one.connected}


def refused(port: int, context: ssl.SSLContext) -> bool:
    """Return whether a connection by *context* ends, at its handshake or at its first message."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as plain:
        try:
            with context.wrap_socket(plain) as sock:
                sock.sendall(b"\x06\x00\x00\x08\x00\x00\x00\x01")
                while sock.recv(4096):
                    continue
        except TimeoutError:
            return False
        except OSError:  # ssl.SSLError is one
            return True
        return True


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_only_certificates_of_the_authority_get_in(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    with serving(site) as (shell, plane), raw_switch(
        shell.port, L1, tls=switch_context(site.authority, "l1")
    ):  # fmt: skip
        eventually(lambda: connected(shell, plane) == {L1}, "a switch with a certificate")
        assert refused(shell.port, switch_context(site.authority, None))
        assert refused(shell.port, switch_context(Authority(site.directory / "other"), "l2"))
        with raw_switch(shell.port, L2) as plain:
            assert plain.closed.wait(60)
        assert connected(shell, plane) == {L1}
        assert shell.counters()["refused-peers"] == 3
    said = caplog.text
    assert "it shows no certificate; give it one (ovs-vsctl set-ssl)" in said
    assert "its certificate is refused: " in said
    assert "it does not speak TLS; connect it by ssl:ADDRESS:PORT" in said


def test_a_switch_takes_no_others_place_with_its_own_certificate(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    file = site.directory / "switches"
    file.write_text(f"{L1:016x} l1\n{L2:016x} l2  # the other\n")
    allowed = read_allowed_switches(file)
    with serving(site, allowed) as (shell, plane):
        with raw_switch(shell.port, L1, tls=switch_context(site.authority, "l2")) as rogue:
            assert rogue.closed.wait(60)
        name = "l1 id:5a3c2b1e-0000-4000-8000-000000000000"  # as ovs-pki writes it
        with raw_switch(shell.port, L1, tls=switch_context(site.authority, name)):
            eventually(lambda: connected(shell, plane) == {L1}, "the switch itself")
    assert f"needs certificate 'l1' by {file}, and it shows 'l2'" in caplog.text


def test_authorities_are_replaced_while_switches_stay(site: Site) -> None:
    """Old and new side by side, then the new one alone: no connection ends, and none of the old one begins."""
    old, new = site.authority, Authority(site.directory / "new", "new")
    with serving(site) as (shell, plane), contextlib.ExitStack() as switches:
        kept = switches.enter_context(raw_switch(shell.port, L1, tls=switch_context(old, "l1")))
        site.install(old, old, new)
        switches.enter_context(raw_switch(shell.port, L2, tls=switch_context(new, "l2")))
        eventually(lambda: connected(shell, plane) == {L1, L2}, "certificates of both authorities")
        site.install(new, new)
        assert refused(shell.port, switch_context(old, "l3"))
        switches.enter_context(raw_switch(shell.port, 0x13, tls=switch_context(new, "l3")))
        eventually(lambda: connected(shell, plane) == {L1, L2, 0x13}, "a switch of the new authority")
        assert not kept.closed.is_set()


def test_files_that_cannot_be_used_change_nothing(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    with serving(site) as (shell, plane):
        for file in (site.files.authority, site.files.certificate):
            file.write_text("rubbish")
        site.files.key.unlink()
        for dpid in (L1, L2):
            with raw_switch(shell.port, dpid, tls=switch_context(site.authority, "l1")):
                eventually(lambda dpid=dpid: connected(shell, plane) == {dpid}, "the files of before")
    assert caplog.text.count("TLS for switches goes on with the files before: ") == 1


def test_each_file_that_cannot_be_used_is_named_at_the_start(site: Site) -> None:
    good = site.files.authority.read_text()
    site.files.authority.write_text("rubbish")
    with pytest.raises(
        SwitchTlsError, match=r"authority .*authority.pem cannot be used: .*; give the certificates"
    ):
        SwitchTlsContexts(site.files)
    site.files.authority.write_text(good)
    site.files.key.unlink()
    with pytest.raises(SwitchTlsError, match=r"key.pem cannot be used: No such file or directory; give a"):
        SwitchTlsContexts(site.files)


@given(
    st.lists(st.binary(min_size=1, max_size=40_000), max_size=4), st.lists(st.integers(1, 5000), max_size=30)
)
def test_clear_text_is_the_same_however_the_wire_cuts(messages: list[bytes], cuts: list[int]) -> None:
    """What waited for the handshake's end included; *cuts*: lengths of the pieces that arrive, at either end."""
    layer, client = TlsLayer(SERVER), _Client(CLIENT)
    sent = b"".join(messages)
    for message in messages:
        layer.send(message)
        client.send(message)
    sizes = [*cuts, 1 << 20]
    to_server, to_client = bytearray(client.data()), bytearray()
    said = bytearray()
    while to_server or to_client:
        size = sizes.pop(0) if len(sizes) > 1 else sizes[0]
        said += layer.receive(bytes(to_server[:size]))
        del to_server[:size]
        to_client += layer.data_to_send()
        client.receive(bytes(to_client[:size]))
        del to_client[:size]
        to_server += client.data()
    assert bytes(said) == sent
    assert bytes(client.said) == sent
    assert layer.established
    assert layer.peer_name == "a switch"


@given(st.binary(min_size=1, max_size=300))
def test_rubbish_is_refused_or_waits_for_more(data: bytes) -> None:
    layer = TlsLayer(SERVER)
    with contextlib.suppress(PeerError):
        assert layer.receive(data) == b""
    assert not layer.established


class _Client:
    """The other end, in memory."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out)
        self._waiting = bytearray()
        self._done = False
        self.said = bytearray()
        self.receive(b"")

    def send(self, data: bytes) -> None:
        self._waiting += data

    def data(self) -> bytes:
        return self._out.read()

    def receive(self, data: bytes) -> None:
        self._in.write(data)
        with contextlib.suppress(ssl.SSLWantReadError):
            if not self._done:
                self._tls.do_handshake()
                self._done = True
            if self._waiting:
                self._tls.write(self._waiting)
                self._waiting.clear()
            while chunk := self._tls.read(1 << 14):
                self.said += chunk


@pytest.fixture(scope="module", autouse=True)
def _contexts(tmp_path_factory: pytest.TempPathFactory) -> None:
    global SERVER, CLIENT
    site = Site(tmp_path_factory.mktemp("tls"))
    SERVER = SwitchTlsContexts(site.files).current()
    CLIENT = switch_context(site.authority, "a switch")


SERVER: ssl.SSLContext
CLIENT: ssl.SSLContext
