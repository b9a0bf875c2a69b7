"""Where agents are listened for: private sockets, TLS, and what keeps them from opening."""

from __future__ import annotations

import os
import socket
import ssl
import stat
import warnings
from pathlib import Path

import pytest

from controller.agents.listeners import ChannelError, TcpListener
from controller.agents.server import AgentServer
from controller.agents.settings import ChannelSettings
from protocol.control import Challenge, Directory, Refused
from protocol.frames import encode
from tests.unit.agents_channel import TOKEN, RawAgent, hello, served
from tests.unit.own_ca import make_ca


def open_and_close(directory: Path, path: Path | None, tcp: TcpListener | None = None) -> None:
    server = AgentServer(ChannelSettings(path, directory / "members.json", tcp), TOKEN)
    server.start()
    server.stop()


def test_sockets_are_private_and_gone_afterwards_and_never_taken_from_another(tmp_path: Path) -> None:
    with served(tmp_path) as at:
        assert stat.S_IMODE(at.socket_path.stat().st_mode) == 0o660
        with pytest.raises(ChannelError, match=r"another controller listens on .*agents\.sock"):
            open_and_close(tmp_path, at.socket_path)
        assert RawAgent.joined(at.socket_path, 1).next(Directory)
    assert not (tmp_path / "agents.sock").exists()

    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(tmp_path / "agents.sock"))
    stale.close()  # as a controller that was killed leaves it
    with served(tmp_path) as at:
        RawAgent.joined(at.socket_path, 1).close()

    (tmp_path / "file").write_text("precious")
    with pytest.raises(ChannelError, match="is not a socket: remove it or give another path"):
        open_and_close(tmp_path, tmp_path / "file")
    assert (tmp_path / "file").read_text() == "precious"
    with pytest.raises(ChannelError, match="the path is too long"):
        open_and_close(tmp_path, tmp_path / ("x" * 120))
    with pytest.raises(ChannelError, match="cannot be made"):
        open_and_close(tmp_path, tmp_path / "no" / "such" / "directory")


def test_a_socket_that_another_program_put_there_meanwhile_stays(tmp_path: Path) -> None:
    with served(tmp_path) as at:
        os.rename(at.socket_path, tmp_path / "moved")
        other = socket.socket(socket.AF_UNIX)
        other.bind(str(at.socket_path))
    assert (tmp_path / "agents.sock").exists()
    other.close()


def test_tls_lets_in_all_who_trust_our_authority_and_none_without_tls(tmp_path: Path) -> None:
    ca = make_ca(tmp_path / "ca")
    with served(tmp_path, TcpListener("127.0.0.1", 0, ca.certificate, ca.key)) as at:
        port = at.server.tcp_port
        assert port is not None
        context = ssl.create_default_context(cafile=str(ca.authority))
        agent = RawAgent.tls(port, context)
        agent.register(1)
        assert agent.next(Directory)

        plain = RawAgent(socket.create_connection(("127.0.0.1", port), timeout=10))
        plain.connection.sendall(encode(hello(2, "00")))
        assert plain.connection.recv(65536)[:1] in (b"", b"\x15"), "a TLS alert, no challenge"
        plain.close()

        old = ssl.create_default_context(cafile=str(ca.authority))
        old.set_ciphers("ALL:@SECLEVEL=0")
        with warnings.catch_warnings(action="ignore"):
            old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
        with pytest.raises((ssl.SSLError, ConnectionError)):
            RawAgent.tls(port, old)

        wrong = RawAgent.tls(port, context)
        wrong.send(hello(3, wrong.next(Challenge).nonce, token="not the token at all"))
        assert [type(message) for message in wrong.all()] == [Refused]
        assert at.connected() == ["h1"]
        agent.close()


def test_what_keeps_a_tls_listener_from_opening_is_named(tmp_path: Path) -> None:
    ca, other = make_ca(tmp_path / "ca"), make_ca(tmp_path / "other")
    with pytest.raises(ChannelError, match=r"TLS certificate .*missing.pem"):
        open_and_close(tmp_path, None, TcpListener("127.0.0.1", 0, tmp_path / "missing.pem", ca.key))
    with pytest.raises(ChannelError, match="TLS certificate"):
        open_and_close(tmp_path, None, TcpListener("127.0.0.1", 0, ca.certificate, other.key))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ChannelError, match=rf"tls:127.0.0.1:{port}: .*in use"):
            open_and_close(tmp_path, None, TcpListener("127.0.0.1", port, ca.certificate, ca.key))
    with pytest.raises(ChannelError, match=r"tls:203.0.113.9:1"):
        open_and_close(tmp_path, None, TcpListener("203.0.113.9", 1, ca.certificate, ca.key))
