//! A coded flow: packets in and repairs out at its sender, packets back at its receiver.

use agent::coding::{
    Aim, ClosedUnit, CodingPolicy, CodingRules, Progress, RedundancyRule, Source, UnitEncoder, UnitRule,
};
use agent::host::Bytes;
use agent::receiving::{DecoderLimits, Rebuilt, Repair, UnitDecoder, UnitShape, MAX_K};
use agent::{Generator, Random};
use coding::packets::Repairs;
use coding::{Code, Kernel};

/// All codes that there are.
pub const CODES: [Code; 4] = [Code::Xor, Code::Rlc, Code::Ldpc, Code::Mds];

/// Returns a policy of the paper's rule with room for what it asks.
pub fn policy(code: Code) -> CodingPolicy {
    CodingPolicy {
        code,
        redundancy: RedundancyRule::Paper,
        target_decode_probability: 0.95,
        unit: UnitRule::Optimal,
        max_k: 32,
        max_r: 16,
        max_overhead: 8.0,
        flush_s: 0.005,
    }
}

/// The sending end.
pub struct Sending {
    rules: CodingRules,
    /// Of the flow.
    pub encoder: UnitEncoder<Vec<u8>>,
    random: Generator,
}

impl Sending {
    /// Returns a flow without an open unit, which aims at units of `k` packets, each blocked with a probability.
    pub fn new(policy: CodingPolicy, blocking_probability: f64, k: u32) -> Sending {
        let rules = CodingRules::new(policy);
        let encoder = UnitEncoder::new(&rules);
        let mut flow = Sending { rules, encoder, random: Generator::new(1) };
        flow.aim(blocking_probability, k);
        flow
    }

    /// Sets what the next units aim at.
    pub fn aim(&mut self, blocking_probability: f64, k: u32) {
        self.encoder.set_aim(Aim { blocking_probability, k, flow: Progress::default() }, &self.rules);
    }

    /// Processes a packet that leaves. Returns the repairs that follow it.
    pub fn add(&mut self, position: u32, packet: &[u8], now: f64, push: bool) -> Vec<Repair<Vec<u8>>> {
        let (longest, payload) = (packet.len() as u32, packet.to_vec());
        let source = Source { position, count: 1, longest, push, payload };
        let closed = self.encoder.take(source, now, &mut self.rules, &mut self.random);
        closed.iter().flat_map(repairs_of).collect()
    }

    /// Closes the open unit if its deadline has come. Returns its repairs.
    pub fn flush(&mut self, now: f64) -> Vec<Repair<Vec<u8>>> {
        if self.encoder.deadline().is_some_and(|deadline| now >= deadline) {
            self.end()
        } else {
            Vec::new()
        }
    }

    /// Closes the open unit. Returns its repairs.
    pub fn end(&mut self) -> Vec<Repair<Vec<u8>>> {
        let closed = self.encoder.end(&mut self.rules, &mut self.random);
        closed.iter().flat_map(repairs_of).collect()
    }
}

fn repairs_of(unit: &ClosedUnit<Vec<u8>>) -> Vec<Repair<Vec<u8>>> {
    let packets: Vec<&[u8]> = unit.payloads.iter().map(Vec::as_slice).collect();
    let repairs = Repairs::encode(unit.code, Kernel::best(), &packets, unit.r as usize, unit.seed)
        .expect("a unit of an encoder can be coded");
    let (k, r, position) = (unit.k, unit.r, unit.position);
    let shape = UnitShape { code: unit.code, k, r, seed: unit.seed };
    let symbols = repairs.symbols().map(|(length, rest)| [length, rest].concat());
    (0..).zip(symbols).map(|(index, symbol)| Repair { position, unit: shape, index, symbol }).collect()
}

/// Returns packets of 1 to `most` bytes.
pub fn packets_of(count: usize, seed: u64, most: u32) -> Vec<Vec<u8>> {
    let mut random = Generator::new(seed);
    let mut packet = || {
        let bytes = 1 + random.below(most);
        (0..bytes).map(|_| random.bits32() as u8).collect()
    };
    (0..count).map(|_| packet()).collect()
}

/// Returns the repairs of one unit of packets.
pub fn unit_of(
    packets: &[Vec<u8>],
    first: u32,
    code: Code,
    blocking_probability: f64,
) -> Vec<Repair<Vec<u8>>> {
    let policy = CodingPolicy { max_k: MAX_K, max_r: 64, ..policy(code) };
    let mut sender = Sending::new(policy, blocking_probability, packets.len() as u32);
    let positions = (0..).map(|ahead| first.wrapping_add(ahead));
    let sent = positions.zip(packets);
    sent.flat_map(|(position, packet)| sender.add(position, packet, 0.0, false)).collect()
}

/// The receiving end.
pub struct Receiving(pub UnitDecoder<Bytes>);

impl Receiving {
    /// Returns a flow to which nothing has come.
    pub fn new(limits: DecoderLimits) -> Receiving {
        Receiving(UnitDecoder::new(limits))
    }

    /// Processes a source. Returns what it lets rebuild: positions and packets.
    pub fn source(&mut self, position: u32, packet: &[u8], now: f64) -> Vec<(u32, Vec<u8>)> {
        let mut rebuilt = Vec::new();
        self.0.source(position, packet.into(), now, &mut rebuilt);
        pairs(rebuilt)
    }

    /// Processes a repair. Returns what it lets rebuild: positions and packets.
    pub fn repair(&mut self, repair: &Repair<Vec<u8>>, now: f64) -> Vec<(u32, Vec<u8>)> {
        let mut rebuilt = Vec::new();
        let Repair { position, unit, index, ref symbol } = *repair;
        let repair = Repair { position, unit, index, symbol: symbol.as_slice().into() };
        self.0.repair(repair, now, &mut rebuilt);
        pairs(rebuilt)
    }
}

fn pairs(rebuilt: Vec<Rebuilt<Bytes>>) -> Vec<(u32, Vec<u8>)> {
    rebuilt.into_iter().map(|Rebuilt { position, packet }| (position, packet.to_vec())).collect()
}
