//! The other agents: where they are, and what went to and came from each.

use std::collections::HashMap;
use std::ops::{Index, IndexMut};

use datapath::crc32c::crc32c;
use datapath::inner::Address;
use datapath::mac::PairKeys;
use datapath::prefetch::prefetch;
use datapath::sent::{Outstanding, SentLog};

use crate::class::TrafficClass;
use crate::coding::Outcomes;
use crate::departure::UnderlayAddress;
use crate::flow_table::FlowTable;
use crate::hash::{NumberMap, NumberSet, SecretMap};
use crate::least_delay::LeastDelay;
use crate::packet::Packet;
use crate::paths::Departures;
use crate::receiving::{
    share, Arrivals, Budget, EarlyRepair, EarlyRepairs, PathProgress, PendingFeedback, ReceiveFlow,
};
use crate::route::{FlowRef, LeafId};

/// Peers that are gone and remembered: more than a fabric has hosts.
const MOST_GONE: usize = 65536;

/// Of one peer, for as long as the agent lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(u32);

/// What the directory says of a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// Where it is reached.
    pub address: UnderlayAddress,
    /// Random number of its start: what its datagrams are proved by.
    pub session: u32,
    /// Where it is.
    pub leaf: LeafId,
    /// Its overlay addresses: what its inner packets may come from.
    pub overlay: Vec<Address>,
}

/// What is kept of a peer that is gone: it may come back, and may have known us all the time.
#[derive(Clone, Copy, Debug)]
struct Gone {
    /// Number of the next datagram to it: it takes numbers that it has seen for replays.
    number: u32,
    /// Of its start: datagrams of this session are taken if it comes back in it.
    session: u32,
    /// Up to which number its datagrams came.
    last: Option<u32>,
}

/// Which outcomes of units are learned together: by leaf and class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MarginId {
    /// Where the units went.
    pub leaf: LeafId,
    /// Of their packets.
    pub class: TrafficClass,
}

/// One peer. `known` is what the controller says of it; everything else is ours.
pub struct Peer<P: Packet> {
    /// From the directory.
    pub known: Known,
    /// By which its datagrams and ours are authenticated; None: they are not.
    pub keys: Option<PairKeys>,
    /// Number of the next datagram to this peer.
    pub number: u32,
    /// Entropy values of what left and was not reported; kept where `logged`.
    pub sent: SentLog,
    /// Whether an estimator or a path policy asks what its reports speak of.
    pub logged: bool,
    /// Coded datagrams that it has not reported.
    pub outstanding: Outstanding,
    /// Units that are not decided.
    pub outcomes: Outcomes<MarginId>,
    /// Kept while a path policy learns.
    pub departures: Option<Departures>,
    /// Our feedback to it, as a flow.
    pub own: FlowRef,
    /// Of the delays from us to it.
    pub least_delay: LeastDelay,
    /// Paths that its reports spoke of.
    pub stamps: NumberSet<u16>,
    /// Which of its datagrams came.
    pub arrivals: Arrivals,
    /// How far its datagrams have come on each path.
    pub progress: PathProgress,
    /// Its flows, by their numbers on the wire.
    pub flows: FlowTable<u32, ReceiveFlow<P>>,
    /// What its flows may keep here.
    pub budget: Budget,
    /// What the next feedback carries.
    pub pending: PendingFeedback,
    /// Whether it is among those that the receiver looks at when feedback is due.
    pub awaits_feedback: bool,
    /// Repairs that overtook every source of their flow.
    pub early: EarlyRepairs<EarlyRepair<P::Symbol>>,
}

impl<P: Packet> Peer<P> {
    fn new(known: Known) -> Peer<P> {
        let id = -1 - i64::from(u32::from_be_bytes(known.address));
        Peer {
            own: FlowRef { id, hash: crc32c(0, &known.address) },
            known,
            keys: None,
            number: 0,
            sent: SentLog::default(),
            logged: false,
            outstanding: Outstanding::default(),
            outcomes: Outcomes::new(0.008),
            departures: None,
            least_delay: LeastDelay::default(),
            stamps: NumberSet::default(),
            arrivals: Arrivals::default(),
            progress: PathProgress::default(),
            flows: FlowTable::default(),
            budget: Budget::default(),
            pending: PendingFeedback::default(),
            awaits_feedback: false,
            early: EarlyRepairs::default(),
        }
    }

    /// Has the processor fetch what a datagram of this number from the peer looks at, and the answer to it.
    pub fn prefetch(&self, number: u32) {
        self.arrivals.prefetch(number);
        prefetch(&self.known);
        prefetch(&self.progress);
        prefetch(&self.flows);
        prefetch(&self.budget);
        prefetch(&self.pending);
        prefetch(&self.early);
        prefetch(&self.own);
        prefetch(&self.number);
    }

    /// Has the processor fetch what a datagram of this number looks at beyond the peer itself.
    pub fn prefetch_state(&self, number: u32) {
        self.arrivals.prefetch_page(number);
        self.progress.prefetch();
        self.flows.prefetch();
        self.pending.prefetch();
    }

    /// Has the processor fetch what its flow that was seen last refers to.
    pub fn prefetch_newest(&self) {
        self.flows.newest().inspect(|flow| flow.prefetch());
    }

    /// Takes up the numbers of both sides: those that came in the same session are replays from now on.
    fn came_back(&mut self, gone: Gone) {
        self.number = gone.number;
        if gone.session == self.known.session {
            self.arrivals = Arrivals::after(gone.last);
        }
    }

    /// Notes that the peer came back as a new session: what it had sent before means nothing any more, and it reports nothing
    /// of what we had.
    pub fn restarted(&mut self) {
        self.sent = SentLog::default();
        self.outstanding = Outstanding::default();
        self.outcomes.clear();
        self.departures = self.departures.take().map(|_| Departures::default());
        self.least_delay = LeastDelay::default();
        self.arrivals = Arrivals::default();
        self.progress = PathProgress::default();
        self.flows = FlowTable::default();
        self.budget = Budget::of(self.budget.limit);
        self.pending = PendingFeedback::default();
        self.early = EarlyRepairs::default();
    }
}

/// All peers, by where they are and by whom they carry packets for.
pub struct Peers<P: Packet> {
    slots: Vec<Option<Box<Peer<P>>>>,
    /// By the address as one number.
    by_address: NumberMap<u32, PeerId>,
    by_overlay: SecretMap<Address, PeerId>,
    /// As in the directory.
    order: Vec<PeerId>,
    /// Where in that order each is, by its number; of those that are gone, where they were.
    places: Vec<u32>,
    /// Peers that are gone.
    gone: HashMap<UnderlayAddress, Gone>,
    /// What was counted of sessions that are over: datagrams lost, and late.
    counted: [u64; 2],
    /// Whether there is a directory.
    pub known: bool,
}

impl<P: Packet> Default for Peers<P> {
    fn default() -> Peers<P> {
        Peers {
            slots: Vec::new(),
            by_address: NumberMap::default(),
            by_overlay: SecretMap::default(),
            order: Vec::new(),
            places: Vec::new(),
            gone: HashMap::new(),
            counted: [0; 2],
            known: false,
        }
    }
}

/// What becomes of peers by a new directory.
#[derive(Debug, Default)]
pub struct Changes {
    /// New ones.
    pub came: Vec<PeerId>,
    /// Those that are there again as a new session, and those that are not there any more: what they sent is to be
    /// dropped, and then `Peers::settle` to be called.
    pub dropped: Vec<PeerId>,
    /// All that are there.
    pub there: Vec<PeerId>,
}

impl<P: Packet> Peers<P> {
    /// Processes a directory, in its order, without ourselves. Returns what changes.
    pub fn set(&mut self, directory: Vec<Known>) -> Changes {
        let mut changes = Changes::default();
        let before = std::mem::take(&mut self.by_address);
        self.by_overlay.clear();
        self.known = true;
        for known in directory {
            let address = known.address;
            let id = match before.get(&number_of(address)) {
                Some(&id) => {
                    if self[id].known.session != known.session {
                        changes.dropped.push(id);
                    }
                    id
                }
                None => {
                    let id = PeerId(self.slots.len() as u32);
                    let mut peer = Peer::new(known.clone());
                    if let Some(gone) = self.gone.remove(&address) {
                        peer.came_back(gone);
                    }
                    self.slots.push(Some(Box::new(peer)));
                    changes.came.push(id);
                    id
                }
            };
            self.by_overlay.extend(known.overlay.iter().map(|&overlay| (overlay, id)));
            self.by_address.insert(number_of(address), id);
            changes.there.push(id);
            self[id].known = known;
        }
        changes.dropped.extend(self.order.iter().filter(|&&id| !self.is_listed(id)));
        self.order.clone_from(&changes.there);
        self.places.resize(self.slots.len(), 0);
        for (place, id) in (0..).zip(&self.order) {
            self.places[id.0 as usize] = place;
        }
        let limit = share(changes.there.len());
        for &id in &changes.there {
            self[id].budget.limit = limit;
        }
        changes
    }

    /// Adds one agent more, which no directory has named yet. Returns its peer.
    pub fn add(&mut self, known: Known) -> PeerId {
        let id = PeerId(self.slots.len() as u32);
        self.known = true;
        self.by_overlay.extend(known.overlay.iter().map(|&overlay| (overlay, id)));
        self.by_address.insert(number_of(known.address), id);
        self.places.push(self.order.len() as u32);
        self.order.push(id);
        self.slots.push(Some(Box::new(Peer::new(known))));
        id
    }

    /// Forgets what dropped peers sent, and those that are not there any more.
    pub fn settle(&mut self, changes: &Changes) {
        for &id in &changes.dropped {
            let Some(peer) = self.get_mut(id) else { continue };
            let Arrivals { lost, late, .. } = peer.arrivals;
            self.counted = [self.counted[0] + lost, self.counted[1] + late];
            if self.is_listed(id) {
                self[id].restarted();
            } else if let Some(peer) = self.slots[id.0 as usize].take() {
                if self.gone.len() >= MOST_GONE {
                    self.gone.clear();
                }
                let Peer { number, known: Known { address, session, .. }, .. } = *peer;
                self.gone.insert(address, Gone { number, session, last: peer.arrivals.last() });
            }
        }
    }

    /// Returns how many datagrams of peers were lost, and how many came late, since the start.
    pub fn lost_and_late(&self) -> [u64; 2] {
        self.iter()
            .map(|peer| &peer.arrivals)
            .fold(self.counted, |[lost, late], arrivals| [lost + arrivals.lost, late + arrivals.late])
    }

    /// Returns true if a peer that is there is in the last directory.
    pub fn is_listed(&self, id: PeerId) -> bool {
        self.at(self[id].known.address) == Some(id)
    }

    /// Returns the peer at this address of the underlay.
    pub fn at(&self, address: UnderlayAddress) -> Option<PeerId> {
        self.by_address.get(&number_of(address)).copied()
    }

    /// Returns the peer that has this overlay address.
    pub fn with(&self, overlay: &Address) -> Option<PeerId> {
        self.by_overlay.get(overlay).copied()
    }

    /// Has the processor fetch where a peer is.
    pub fn prefetch_place(&self, id: PeerId) {
        self.slots.get(id.0 as usize).map(prefetch);
    }

    /// Returns a peer, if it is still there.
    pub fn get_mut(&mut self, id: PeerId) -> Option<&mut Peer<P>> {
        self.slots.get_mut(id.0 as usize)?.as_deref_mut()
    }

    /// Sorts peers by the directory's order, without those that are gone.
    pub fn sort(&self, ids: &mut Vec<PeerId>) {
        ids.retain(|id| self.slots[id.0 as usize].is_some());
        ids.sort_unstable_by_key(|id| self.places[id.0 as usize]);
    }

    /// Returns all peers in the directory's order.
    pub fn ids(&self) -> Vec<PeerId> {
        self.order.clone()
    }

    /// Returns all peers in the directory's order.
    pub fn iter(&self) -> impl Iterator<Item = &Peer<P>> {
        self.order.iter().map(|&id| &self[id])
    }
}

/// Returns an address as a number, which takes a hash one multiplication.
fn number_of(address: UnderlayAddress) -> u32 {
    u32::from_be_bytes(address)
}

impl<P: Packet> Index<PeerId> for Peers<P> {
    type Output = Peer<P>;

    /// Returns a peer that is there.
    fn index(&self, id: PeerId) -> &Peer<P> {
        match &self.slots[id.0 as usize] {
            Some(peer) => peer,
            None => panic!("a peer that is gone was asked for"),
        }
    }
}

impl<P: Packet> IndexMut<PeerId> for Peers<P> {
    fn index_mut(&mut self, id: PeerId) -> &mut Peer<P> {
        match &mut self.slots[id.0 as usize] {
            Some(peer) => peer,
            None => panic!("a peer that is gone was asked for"),
        }
    }
}
