"""Every code, named in a scheme's file, between real agents: bytes arrive as they were though datagrams get lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import get_args

from benchmarks.agent_pair import OVERLAY, AgentPair
from controller.schemes.loader import SCHEME_DIRECTORY, load
from controller.schemes.policy import policy_for
from protocol.control import Impair
from protocol.policy import CodeName, Policy
from tests.lab.overlay_transfer import RECEIVE, SEND
from tests.waiting import PATIENCE_S, eventually

PORT = 7100
PACKET_S = 0.0006
TRANSFER_BYTES = 90_000
"""Below 100 kB: all of it is short, so all of it is coded."""
MOST_TRANSFERS = 12


def policy(code: str, version: int, folder: Path) -> Policy:
    text = (SCHEME_DIRECTORY / "caps.yaml").read_text()
    assert "    code: rlc\n" in text
    file = folder / f"{code}.yaml"
    file.write_text(text.replace("    code: rlc\n", f"    code: {code}\n"))
    return policy_for(load(file), PACKET_S, version)


def transfer(pair: AgentPair, port: int) -> None:
    receiver = pair.popen(
        1,
        [sys.executable, "-S", "-c", RECEIVE, str(port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert receiver.stdout is not None
    assert "listening" in receiver.stdout.readline()
    sent = pair.run(
        0, [sys.executable, "-S", "-c", SEND, OVERLAY[1], str(port), str(TRANSFER_BYTES), "0"], 120.0
    )
    assert sent.split()[-2:] == receiver.communicate(timeout=PATIENCE_S)[0].split()[-2:]


def test_every_code_rebuilds_what_gets_lost_between_agents(tmp_path: Path) -> None:
    codes = get_args(CodeName)
    assert len(codes) == 4
    with AgentPair(policy(codes[0], 1, tmp_path)) as pair:
        pair.server.impair("h2", Impair(0.1), 60.0)
        for number, code in enumerate(codes):
            if number:
                pair.set_policy(policy(code, number + 1, tmp_path))

            def rebuilt() -> int:
                return int(pair.counters(1).get("packets_recovered", 0))

            before = rebuilt()
            for attempt in range(MOST_TRANSFERS):
                transfer(pair, PORT + MOST_TRANSFERS * number + attempt)
                if rebuilt() > before:
                    break
            eventually(
                lambda before=before, rebuilt=rebuilt: rebuilt() > before,
                f"{code} has rebuilt something in {MOST_TRANSFERS} transfers",
            )
