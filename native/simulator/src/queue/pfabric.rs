//! pFabric's queue (Alizadeh et al., SIGCOMM 2013, Section 4.1): the packet of best priority decides which flow goes
//! next, and that flow's earliest packet leaves, so a flow's packets keep their order; the worst priority is dropped.
//! Buffers hold some 24 packets, so a scan costs less than an ordered structure.

use crate::packets::{Frame, Packet};

#[derive(Clone, Copy, Debug)]
struct Ranked {
    priority: u32,
    flow: u32,
    frame: Frame,
}

/// In order of arrival.
#[derive(Clone, Debug, Default)]
pub struct PFabric(Vec<Ranked>);

impl PFabric {
    pub fn add(&mut self, frame: Frame, packet: &Packet) {
        self.0.push(Ranked { priority: packet.priority, flow: packet.flow, frame });
    }

    /// Remove the packet of worst priority, the last of equals; there is at least one.
    pub fn drop_worst(&mut self) -> Frame {
        let (mut place, mut worst) = (0, 0);
        for (other, ranked) in self.0.iter().enumerate() {
            if ranked.priority >= worst {
                (place, worst) = (other, ranked.priority);
            }
        }
        self.0.remove(place).frame
    }

    pub fn take(&mut self) -> Option<Frame> {
        let mut best = self.0.first()?;
        for ranked in &self.0 {
            if ranked.priority < best.priority {
                best = ranked;
            }
        }
        let flow = best.flow;
        let place = self.0.iter().position(|ranked| ranked.flow == flow)?;
        Some(self.0.remove(place).frame)
    }
}
