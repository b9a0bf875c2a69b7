//! Which path a packet takes: the built-in choices, and the trait that others implement.

use crate::random::{key, mix, Purpose, Stream};
use crate::time::Time;

/// Where a path is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// When the packet comes to its host's port.
    Host,
    /// When the packet has left its host: packets that a host's queue reorders or drops are not counted.
    Leaf,
}

/// What a choice may look at; `paths` are those that are up, at least one.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub now: Time,
    /// The flow's number in the workload, and the packet's in the flow.
    pub flow: u32,
    pub number: u32,
    pub source: u32,
    pub destination: u32,
    /// Whether it is an acknowledgement: source and destination are those of the packet, not of the flow.
    pub acknowledgement: bool,
    pub paths: &'a [u16],
}

/// Chooses a path for every packet that has a choice. It sees packets in the order of events; `now` never falls.
pub trait PathChoice: Send {
    fn place(&self) -> Place {
        Place::Leaf
    }

    /// Return one of `request.paths`.
    fn choose(&mut self, request: &Request) -> u16;
}

/// The choices that are built in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balancing {
    /// Each packet at random.
    Random,
    /// Each host's packets in turn, from a random start.
    Turn,
    /// Each direction of a flow on one path, by a hash of source, destination and flow under the run's seed.
    Hash,
    /// Source + destination + flow, modulo the paths: data and acknowledgements share one.
    Sum,
}

impl Balancing {
    pub fn choice(self, hosts: u32, seed: u64) -> Box<dyn PathChoice> {
        match self {
            Balancing::Random => Box::new(Random(Stream::new(seed, Purpose::Paths))),
            Balancing::Turn => {
                let mut starts = Stream::new(seed, Purpose::Starts);
                Box::new(Turn((0..hosts).map(|_| starts.draw() as u32).collect()))
            }
            Balancing::Hash => Box::new(Hash(key(seed, Purpose::Hashes))),
            Balancing::Sum => Box::new(Sum),
        }
    }
}

struct Random(Stream);

impl PathChoice for Random {
    fn choose(&mut self, request: &Request) -> u16 {
        request.paths[self.0.below(request.paths.len() as u32) as usize]
    }
}

/// A counter for each host.
struct Turn(Vec<u32>);

impl PathChoice for Turn {
    fn choose(&mut self, request: &Request) -> u16 {
        let counter = &mut self.0[request.source as usize];
        let path = request.paths[*counter as usize % request.paths.len()];
        *counter = counter.wrapping_add(1);
        path
    }
}

struct Hash(u64);

impl PathChoice for Hash {
    fn choose(&mut self, request: &Request) -> u16 {
        let ends = u64::from(request.source) << 32 | u64::from(request.destination);
        let hash = mix(mix(self.0 ^ ends) ^ u64::from(request.flow));
        request.paths[(((hash >> 32) * request.paths.len() as u64) >> 32) as usize]
    }
}

struct Sum;

impl PathChoice for Sum {
    fn choose(&mut self, request: &Request) -> u16 {
        let sum = u64::from(request.source) + u64::from(request.destination) + u64::from(request.flow);
        request.paths[(sum % request.paths.len() as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATHS: [u16; 5] = [0, 2, 3, 7, 8];

    fn chosen(balancing: Balancing, seed: u64, flow: u32, count: u32) -> Vec<u16> {
        let mut choice = balancing.choice(4, seed);
        let request = |number| Request {
            now: 0,
            flow,
            number,
            source: 1,
            destination: 3,
            acknowledgement: false,
            paths: &PATHS,
        };
        (0..count).map(|number| choice.choose(&request(number))).collect()
    }

    #[test]
    fn in_turn_all_paths_are_used_equally() {
        let of = chosen(Balancing::Turn, 1, 0, 10);
        assert_eq!(of[..5], of[5..]);
        let mut once = of[..5].to_vec();
        once.sort_unstable();
        assert_eq!(once, PATHS);
    }

    #[test]
    fn hashes_keep_a_flow_on_one_path_and_spread_flows() {
        for balancing in [Balancing::Hash, Balancing::Sum] {
            let mut first = Vec::new();
            for flow in 0..200 {
                let of = chosen(balancing, 1, flow, 3);
                assert!(of.iter().all(|path| *path == of[0]));
                first.push(of[0]);
            }
            for path in PATHS {
                let count = first.iter().filter(|chosen| **chosen == path).count();
                assert!((20..=60).contains(&count), "{balancing:?}: path {path} has {count} of 200 flows");
            }
        }
        assert_ne!(
            (0..50).map(|flow| chosen(Balancing::Hash, 1, flow, 1)[0]).collect::<Vec<_>>(),
            (0..50).map(|flow| chosen(Balancing::Hash, 2, flow, 1)[0]).collect::<Vec<_>>()
        );
    }

    #[test]
    fn random_paths_are_uniform() {
        let of = chosen(Balancing::Random, 4, 0, 5000);
        for path in PATHS {
            let count = of.iter().filter(|chosen| **chosen == path).count();
            assert!((880..1120).contains(&count), "path {path}: {count} of 5000 packets");
        }
    }
}
