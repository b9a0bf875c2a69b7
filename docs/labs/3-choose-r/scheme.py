"""Lab 3: CAPS with at most as many repairs as your function says: scheme.py MY_R.py > my-r.yaml

Units have at most K packets; a unit whose packets may be blocked gets up to repairs(K, BLOCKED, TARGET) repairs.
"""

import runpy
import sys

K, BLOCKED, TARGET = 10, 0.2, 0.95
SCHEME = """\
name: my-r
title: CAPS with r of my own
summary: Units of at most {k} packets with at most {r} repairs, as my function says for {blocked:.0%} blocked.
prior_knowledge: true
short:
  group: spray
  entropy: spray
  coding:
    code: mds
    redundancy: target-decode-probability
    target_decode_probability: 0.999  # so that r, not the target, decides
    max_k: {k}
    max_r: {r}
    max_overhead: {overhead}
  release: {{packet_times: 4.25}}
long:
  by_mode: {{on: hash, off: spray}}
  entropy: spray
  release: {{rule: paths, packet_times: 32.5}}
control:
  group: spray
  entropy: spray
mode:
  sampling_packet_times: 6.25
"""


def main():
    if len(sys.argv) != 2:
        sys.exit("give your file: scheme.py my_r.py > my-r.yaml")
    r = runpy.run_path(sys.argv[1])["repairs"](K, BLOCKED, TARGET)
    if not 1 <= r <= 64:
        sys.exit(f"repairs({K}, {BLOCKED}, {TARGET}) gave {r!r}: a scheme takes 1 to 64")
    print(SCHEME.format(k=K, r=r, blocked=BLOCKED, overhead=r / K), end="")


if __name__ == "__main__":
    main()
