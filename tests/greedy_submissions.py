"""Submissions to lab 3 that take more than their share by processes that they start; the solution follows each."""

from __future__ import annotations

BURNS = """\
import os, time
for _ in range(3):  # each below the limit of a process
    if os.fork() == 0:
        while time.process_time() < 1.2:
            pass
        os._exit(0)
for _ in range(3):
    os.wait()
"""
EATS = """\
import os, signal, time
children = []
ready, full = os.pipe()  # in a sandbox no file can be written
for _ in range(4):  # each below the limit of a process
    child = os.fork()
    if child == 0:
        held = bytearray(150 << 20)
        for place in range(0, len(held), 4096):
            held[place] = 1
        os.write(full, b"x")
        time.sleep(300)
    children.append(child)
for _ in children:
    os.read(ready, 1)
time.sleep(2)
for child in children:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
"""
STAYS = """\
import os, sys, time
if os.fork() == 0:
    with open({pid!r}, "x") as file:
        file.write(str(os.getpid()))
    time.sleep(300)
while not os.path.exists({pid!r}) or not os.path.getsize({pid!r}):
    time.sleep(0.01)
{then}
"""

DEEP = """
import os
home = os.getcwd()
for place in PLACES:
    try:
        os.chdir(place)
        for _ in range(3000):
            os.mkdir("d")
            os.chdir("d")
        open("file", "w").close()
    except OSError:
        pass
    os.chdir(home)
"""
"""Folders in each other, more than Python calls a function in itself. PLACES: where."""
