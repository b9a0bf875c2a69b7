"""TPFS's Eq. 1-7 as printed. They are in `controller.tpfs.printed`, for the scheme `tpfs-paper` uses them."""

from controller.tpfs.printed import (
    AS_MEANT as AS_MEANT,
)
from controller.tpfs.printed import (
    AS_PRINTED as AS_PRINTED,
)
from controller.tpfs.printed import (
    Queue as Queue,
)
from controller.tpfs.printed import (
    best_features as best_features,
)
from controller.tpfs.printed import (
    delta as delta,
)
from controller.tpfs.printed import (
    distance as distance,
)
from controller.tpfs.printed import (
    gains as gains,
)
from controller.tpfs.printed import (
    loosest_alpha as loosest_alpha,
)
from controller.tpfs.printed import (
    most_alpha as most_alpha,
)
from controller.tpfs.printed import (
    present_time as present_time,
)
from controller.tpfs.printed import (
    removed_bad as removed_bad,
)
from controller.tpfs.printed import (
    removed_bad_meant as removed_bad_meant,
)
from controller.tpfs.printed import (
    removed_good as removed_good,
)
from controller.tpfs.printed import (
    sample_points as sample_points,
)
from controller.tpfs.printed import (
    serving_time as serving_time,
)
