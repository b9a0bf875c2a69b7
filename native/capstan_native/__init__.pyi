"""What is compiled (native/): of the host agent erasure codes, decisions and the moving of packets, of the controller
CAPTON, leaf modes, split paths and the reading of bodies; the simulator.

Erasure codes on GF(256) and GF(2), by number: 1 xor, 2 rlc, 3 ldpc, 4 mds.

Units have k = 1..255 sources and r = 1..255 repairs (mds: k + r <= 256); seeds are unsigned 32-bit numbers. `kernel`
forces one of `kernels()` (default: the fastest); all give the same bytes. The interpreter is released while a call
computes. Whatever cannot be raises ValueError, or OverflowError for numbers that no unit can have, and writes nothing.
"""

from capstan_native._capton import *
from capstan_native._codes import *
from capstan_native._coding import *
from capstan_native._core import *
from capstan_native._fabric import *
from capstan_native._json import *
from capstan_native._moving import *
from capstan_native._paths import *
from capstan_native._simulator import *
