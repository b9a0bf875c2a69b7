//! Which path a packet takes where no agent chooses it.

use crate::random::{key, mix, Purpose, Stream};

/// What a choice looks at; `paths` are those that are up, at least one.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The flow's number in the workload.
    pub flow: u32,
    /// Of the packet, not of the flow: acknowledgements go the other way.
    pub source: u32,
    pub destination: u32,
    pub paths: &'a [u16],
}

/// The choices that there are.
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
    pub fn choice(self, hosts: u32, seed: u64) -> Choice {
        match self {
            Balancing::Random => Choice::Random(Stream::new(seed, Purpose::Paths)),
            Balancing::Turn => {
                let mut starts = Stream::new(seed, Purpose::Starts);
                Choice::Turn((0..hosts).map(|_| starts.draw() as u32).collect())
            }
            Balancing::Hash => Choice::Hash(key(seed, Purpose::Hashes)),
            Balancing::Sum => Choice::Sum,
        }
    }
}

/// A choice, and what it draws from: it sees packets when they have left their hosts, in the order of events.
pub enum Choice {
    Random(Stream),
    /// A counter for each host.
    Turn(Vec<u32>),
    /// Of the run's seed.
    Hash(u64),
    Sum,
}

impl Choice {
    /// Return one of `request.paths`.
    pub fn choose(&mut self, request: &Request) -> u16 {
        let &Request { flow, source, destination, paths } = request;
        let place = match self {
            Choice::Random(stream) => stream.below(paths.len() as u32) as usize,
            Choice::Turn(counters) => {
                let counter = &mut counters[source as usize];
                let turn = *counter;
                *counter = turn.wrapping_add(1);
                turn as usize % paths.len()
            }
            Choice::Hash(key) => {
                let ends = u64::from(source) << 32 | u64::from(destination);
                let hash = mix(mix(*key ^ ends) ^ u64::from(flow));
                (((hash >> 32) * paths.len() as u64) >> 32) as usize
            }
            Choice::Sum => {
                let sum = u64::from(source) + u64::from(destination) + u64::from(flow);
                (sum % paths.len() as u64) as usize
            }
        };
        paths[place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATHS: [u16; 5] = [0, 2, 3, 7, 8];

    fn chosen(balancing: Balancing, seed: u64, flow: u32, count: u32) -> Vec<u16> {
        let mut choice = balancing.choice(4, seed);
        let request = Request { flow, source: 1, destination: 3, paths: &PATHS };
        (0..count).map(|_| choice.choose(&request)).collect()
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
