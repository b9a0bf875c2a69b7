"""os-ken as it comes, for comparison: ``python -m tests.lab.osken_bare PORT`` prints what it notices as JSON lines."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import traceback

from os_ken import cfg
from os_ken.base.app_manager import AppManager, OSKenApp
from os_ken.controller import ofp_event
from os_ken.controller.handler import DEAD_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.ofproto import ofproto_v1_5


class Bare(OSKenApp):
    """Reports switches that come and go, and answers every packet-in with a packet-out to port 2."""

    OFP_VERSIONS = [ofproto_v1_5.OFP_VERSION]  # noqa: RUF012

    @set_ev_cls(ofp_event.EventOFPStateChange, [MAIN_DISPATCHER, DEAD_DISPATCHER])
    def changed(self, event):
        _write_line({"state": event.state, "dpid": event.datapath.id})
        if event.state == MAIN_DISPATCHER:
            datapath = event.datapath
            ofp, parser = datapath.ofproto, datapath.ofproto_parser
            actions = [parser.OFPActionOutput(ofp.OFPP_CONTROLLER, 128)]
            apply = [parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, actions)]
            match = parser.OFPMatch(in_port=1)
            datapath.send_msg(parser.OFPFlowMod(datapath, priority=1, match=match, instructions=apply))

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def packet_in(self, event):
        datapath = event.msg.datapath
        ofp, parser = datapath.ofproto, datapath.ofproto_parser
        datapath.send_msg(
            parser.OFPPacketOut(
                datapath,
                match=parser.OFPMatch(in_port=ofp.OFPP_CONTROLLER),
                actions=[parser.OFPActionOutput(2)],
                data=event.msg.data,
            )
        )


def _write_line(fields: dict[str, object]) -> None:
    # One write: print() writes text and line end apart, and threads of os-ken write between them.
    os.write(sys.stdout.fileno(), (json.dumps(fields) + "\n").encode())


def _print_threads() -> None:
    main = threading.main_thread().ident
    while True:
        time.sleep(0.05)
        stack = traceback.walk_stack(sys._current_frames()[main])
        waits = any(frame.f_code.co_name == "joinall" for frame, _ in stack)
        _write_line({"threads": threading.active_count(), "waits": waits})


if __name__ == "__main__":
    cfg.CONF(args=[], project="os_ken")
    cfg.CONF.set_override("ofp_tcp_listen_port", int(sys.argv[1]))
    threading.Thread(target=_print_threads, daemon=True).start()
    AppManager.run_apps(["os_ken.controller.ofp_handler", "tests.lab.osken_bare"])
