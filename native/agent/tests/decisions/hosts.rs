//! What the agents of several hosts do together, datagram by datagram.

use crate::support::hosts::{hand_over, host, known, packet, policy};
