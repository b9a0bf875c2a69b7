//! Traffic classes, as the outer DSCP carries them (protocol/underlay.py).

/// Priority levels of a traffic class; 0 is served first.
pub const PRIORITIES: usize = 8;

/// Class of an inner packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum TrafficClass {
    /// Traffic of hosts without an agent.
    None = 0,
    /// Payload of a flow that has sent less than the policy's limit.
    Short = 1,
    /// Payload of a flow behind that limit.
    Long = 2,
    /// SYN, FIN, RST, pure ACKs and agents' own feedback: never coded, never counted as short.
    Control = 3,
}

impl TrafficClass {
    /// All classes, each at the place of its value.
    pub const ALL: [TrafficClass; 4] =
        [TrafficClass::None, TrafficClass::Short, TrafficClass::Long, TrafficClass::Control];

    /// Returns the class with this value; None if there is none.
    pub fn of(value: u8) -> Option<TrafficClass> {
        TrafficClass::ALL.get(usize::from(value)).copied()
    }

    /// Returns the 6-bit DSCP of this class and a priority (0 to 7, the highest bits of others are ignored).
    pub fn dscp(self, priority: u8) -> u8 {
        (self as u8) << 3 | (priority & 7)
    }

    /// Returns the place of this class where things are kept by class.
    pub fn index(self) -> usize {
        self as usize
    }
}
