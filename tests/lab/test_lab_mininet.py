"""The topologies under Mininet's own command, with its own switches."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.lab_world import run_in_world

HERE = Path(__file__).parent
TOPOLOGIES = HERE.parents[1] / "topologies"
# The machine's own Open vSwitch as Mininet expects it, but private to this world; /proc/sys read-only, for
# Mininet changes sysctls of the whole machine at start.
COMMAND = """
mount --bind -o ro /proc/sys /proc/sys && mount -o remount,ro,bind /proc/sys
mkdir -p /run/openvswitch /run/ovs
export OVS_RUNDIR=/run/openvswitch OVS_DBDIR=/run/ovs OVS_LOGDIR=/run/ovs
ovsdb-tool create /run/ovs/conf.db /usr/share/openvswitch/vswitch.ovsschema
ovsdb-server /run/ovs/conf.db --remote=punix:/run/openvswitch/db.sock -vconsole:off --detach --pidfile
ovs-vsctl --no-wait init
ovs-vswitchd --disable-system -vconsole:off --detach --pidfile
cd /run && exec mn --custom "$1" --topo "$2" --link tc --switch ovs,datapath=user --controller none \
    --test none -v info
"""


@pytest.mark.parametrize(
    ("file", "topo", "links"),
    [
        ("leaf_spine.py", "leafspine,2,3,2,10,50", ["(l2, s3)", "(h4, l2)"]),
        ("fat_tree.py", "fattree,2,1,10", ["(a2, c1)", "(e1, a1)"]),
    ],
)
def test_plain_mn_builds_the_topology(file: str, topo: str, links: list[str]) -> None:
    done = run_in_world("bash", "-c", COMMAND, "mn", str(TOPOLOGIES / file), topo)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "Traceback" not in said
    assert "10.00Mbit" in said, "the rates are given to Mininet's links"
    for link in links:
        assert link in said, said
