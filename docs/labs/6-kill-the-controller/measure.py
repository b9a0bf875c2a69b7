"""Lab 6: kill parts of the running lab, and write what went on meanwhile: measure.py ID [FILE]. As root.

ID: the lab's, as ./capstan lab shows it. FILE (default: results/lab6-TIME/log.csv) has rows at_s, what, value:
kill: the part; back: a part that was started again; api: 1 if the controller answered, else 0; ping: number of a
request of h1 to h3 that was answered; flow: 1 if a TCP connection of h1 to h3 that was begun then carried a byte
within 1 s, else 0.
"""

import csv
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PARTS = {
    "controller": "serve --lab .*",
    "agent h1": r"host_agent --host h1 .*",
    "switch l2": "ovs-vswitchd unix:.*/l2/",
}
REST_S = 12.0
"""Seconds before each kill, and after the last."""
ALL_S = REST_S * (len(PARTS) + 1)
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""Without the proxy of a class's machines: the controller is on this one."""
PORT = 9000
SERVER = f"""
import signal, socket
signal.alarm({int(ALL_S) + 20})
server = socket.create_server(("", {PORT}), backlog=64)
while True:
    connection, _ = server.accept()
    with connection:
        connection.settimeout(2)
        try:
            connection.sendall(connection.recv(1))
        except OSError:
            pass
"""
CLIENT = f"""
import socket, sys, threading, time
def connect():
    began, carried = time.time(), 0
    try:
        with socket.create_connection((sys.argv[1], {PORT}), 1) as connection:
            connection.settimeout(1)
            connection.sendall(b"x")
            carried = len(connection.recv(1))
    except OSError:
        pass
    print(began, carried, flush=True)
end = time.time() + {ALL_S}
while time.time() < end:
    threading.Thread(target=connect).start()
    time.sleep(0.2)
"""


def lab_directory():
    if len(sys.argv) < 2 or not Path(f"/run/capstan/{sys.argv[1]}/controller/endpoints.json").is_file():
        sys.exit("give the id of a lab that is up: ./capstan lab small --scheme rps says it")
    return Path(f"/run/capstan/{sys.argv[1]}")


def process_of(words, lab):
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            command = os.fsdecode(Path(f"/proc/{name}/cmdline").read_bytes().replace(b"\0", b" "))
            marked = f"CAPSTAN_LAB={lab.name}".encode() in Path(f"/proc/{name}/environ").read_bytes()
        except OSError:
            continue
        if marked and re.search(words, command) and "setpriv" not in command:
            return int(name)
    sys.exit(f"lab {lab.name} has no process {words}")


class Program:
    """A program whose output is read when it has ended. A pipe holds 64 KiB, 41 s of ping's: then ping would wait."""

    def __init__(self, words):
        self.output = tempfile.TemporaryFile("w+")  # noqa: SIM115 read at the end
        self.process = subprocess.Popen(words, cwd=ROOT, stdout=self.output)

    def whole_output(self):
        self.process.wait()
        self.output.seek(0)
        return self.output.read()


def on(lab, host, *command):
    return Program([sys.executable, "-m", "cli", "exec", "--lab", lab.name, host, "--", *command])


def ask(api, path, within_s=0.5):
    with OPENER.open(f"{api}/api/v1{path}", timeout=within_s) as answer:
        return json.load(answer)


def main():
    lab = lab_directory()
    api = json.loads((lab / "controller" / "endpoints.json").read_text())["api"]
    server = on(lab, "h3", sys.executable, "-c", SERVER)
    time.sleep(2)
    ping = on(lab, "h1", "ping", "-D", "-n", "-i", "0.05", "-w", f"{ALL_S:g}", "h3")
    client = on(lab, "h1", sys.executable, "-c", CLIENT, "h3")
    rows, start = [], time.time()
    kills = [(start + REST_S * (place + 1), part) for place, part in enumerate(PARTS)]
    while time.time() < start + ALL_S:
        if kills and time.time() >= kills[0][0]:
            _, part = kills.pop(0)
            victim = process_of(PARTS[part], lab)
            rows.append((time.time(), "kill", part))
            os.kill(victim, signal.SIGKILL)
            print(f"killed {part}", flush=True)
        asked_s = time.time()
        try:
            ask(api, "/health")
            rows.append((asked_s, "api", 1))
        except (OSError, ValueError):
            rows.append((asked_s, "api", 0))
        time.sleep(0.1)
    pings, flows = ping.whole_output(), client.whole_output()
    server.process.terminate()
    rows += [
        (float(match[1]), "ping", int(match[2]))
        for match in re.finditer(r"^\[([\d.]+)\].*icmp_seq=(\d+) ttl", pings, re.MULTILINE)
    ]
    rows += [(float(began), "flow", int(carried)) for began, carried in map(str.split, flows.splitlines())]
    rows += [
        (event["at"], "back", event["part"])
        for event in ask(api, "/events?limit=10000&topics=faults", within_s=30)["events"]
        if event["kind"] == "part-restarted" and event["at"] > start
    ]
    file = Path(sys.argv[2]) if sys.argv[2:] else ROOT / "results" / f"lab6-{int(start)}" / "log.csv"
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", newline="") as written:
        writer = csv.writer(written, lineterminator="\n")
        writer.writerow(("at_s", "what", "value"))
        writer.writerows((f"{time_s - start:.3f}", what, value) for time_s, what, value in sorted(rows))
    print(f"written: {file}")


if __name__ == "__main__":
    main()
