//! Has packets recorded as they come to links' ports.

use crate::packets::Handle;
use crate::recording::Recorded;
use crate::simulation::Simulation;

impl Simulation {
    /// Record that a packet has come to a link's port.
    pub(crate) fn note(&mut self, link: u32, handle: Handle, queue: usize) {
        let known = self.recording.as_ref().is_some_and(|recording| recording.knows(handle));
        let fresh = (!known).then(|| self.recorded(handle));
        let Some(recording) = &mut self.recording else { return };
        if let Some(fresh) = fresh {
            recording.meet(handle, fresh);
        }
        recording.offered(handle, link, queue, self.now);
    }

    fn recorded(&mut self, handle: Handle) -> Recorded {
        let packet = *self.packets.get(handle);
        if let Some(recorded) = self.recorded_datagram(handle) {
            return recorded;
        }
        let (number, demand) = match self.flows.get(packet.flow) {
            Some(flow) => (flow.number, flow.demand),
            None => (0, self.demands[0]),
        };
        let back = packet.destination == demand.source;
        Recorded::plain(&packet, number, if back { demand.destination } else { demand.source })
    }
}
