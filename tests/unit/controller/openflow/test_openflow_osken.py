"""What is loaded of os-ken, and that messages are the same with all of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
MESSAGES = """
import sys
from controller.openflow import bundle, codec, session
from controller.openflow.wanted import Bucket, FlowRule, Group, Match, Meter, Output, SetField, ToController
match = Match(in_port=3, eth_type=0x800, ip_proto=17, ipv4_dst="10.0.0.0/9", udp_dst=(46976, 0xFFC0))
actions = (SetField("udp_src", 5), Output(7), ToController())
print(codec.add_flow(FlowRule(1, 7, match, actions, goto=3, cookie=9), 2).hex())
print(codec.set_group(Group(4, "dp_hash", 1, (Bucket((Output(2),), watch_port=2, weight=3),))).hex())
print(codec.add_meter(Meter(6)).hex())
print(codec.packet_out(5, b"frame").hex())
"""


def said(program: str) -> list[str]:
    return subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()


@pytest.mark.slow
def test_messages_are_those_of_the_whole_of_os_ken() -> None:
    """Also where all of it is imported afterwards, as an application of os-ken's in the same process does."""
    alone, after, before = (
        said(program)
        for program in (
            MESSAGES,
            MESSAGES
            + "import os_ken.base.app_manager, os_ken.lib.packet.bgp, os_ken.ofproto.ofproto_v1_0_parser\n",
            "import os_ken.ofproto.ofproto_v1_5_parser\n" + MESSAGES,
        )
    )
    assert len(alone) == 4
    assert alone == after == before


@pytest.mark.slow
def test_neither_other_versions_nor_packets_are_loaded() -> None:
    loaded = said(
        "import sys, controller.app, controller.shell.shell\n"
        "print(*sorted(name for name in sys.modules if name.startswith(('os_ken.', 'oslo_config'))))"
    )
    names = loaded[0].split()
    assert "os_ken.ofproto.ofproto_v1_5_parser" in names
    assert not [name for name in names if "v1_4" in name or "bgp" in name or "oslo" in name]
