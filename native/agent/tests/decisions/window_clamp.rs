//! Windows that hosts get: as the Python agent wrote them (recorded at d7038cc), bit for bit, but for updates that let no
//! segment go, which there are none of any more; and what always holds.

use std::collections::VecDeque;

use crate::support::{recorded, Words};
use agent::admission::{Clamped, SackBlocks, Segment, TcpBytes, WindowClamp, ACK, PSH, SYN};
use agent::{Generator, Random};
use trials::trials;

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len())
        .step_by(2)
        .map(|offset| u8::from_str_radix(&hex[offset..offset + 2], 16).expect("hex"))
        .collect()
}

fn hex(data: &[u8]) -> String {
    data.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn seconds(word: &str) -> f64 {
    word.parse().expect("a float")
}

#[test]
fn windows_are_advertised_as_recorded() {
    let mut clamp = WindowClamp::<TcpBytes>::new(0.0);
    for (number, line) in recorded(include_str!("../vectors/window_clamp.txt")) {
        let mut words = Words::of(line);
        let packet = |words: &mut Words<'_>| {
            let data = bytes(words.word());
            TcpBytes { data: data.into(), transport: words.number(), payload: words.number() }
        };
        match words.word() {
            "new" => {
                clamp = WindowClamp::new(words.number());
                continue;
            }
            "left" => clamp.left(&packet(&mut words).segment().expect("a header")),
            "arrived" => {
                let mut packet = packet(&mut words);
                let segment = packet.segment().expect("a header");
                clamp.arrived(&mut packet, &segment, seconds(words.word()));
                let said = hex(&packet.data[packet.transport + 14..packet.transport + 18]);
                assert_eq!(said, words.word(), "line {number}: {line}");
            }
            "update" => {
                let update = clamp.update(seconds(words.word()));
                let said = update.map_or("-".into(), |packet| hex(&packet.data));
                assert_eq!(said, words.word(), "line {number}: {line}");
            }
            "rate" => clamp.set_rate(seconds(words.word()), seconds(words.word())),
            _ => clamp.join(words.number(), words.number(), words.number()),
        }
        assert_eq!(words.word(), "|", "line {number}: {line}");
        let said = (clamp.sent_bytes(), clamp.segment_bytes(), u8::from(clamp.is_known()));
        assert_eq!(said, (words.number(), words.number(), words.number()), "line {number}: {line}");
        let due = Some(words.word()).filter(|word| *word != "-").map(seconds);
        assert_eq!(clamp.deadline(), due, "line {number}: {line}");
    }
}

const MSS: u32 = 1400;
/// What SYNs say, where timestamps take 12 bytes of it.
const LARGEST: Option<u64> = Some(MSS as u64 + 12);
const RTT_S: f64 = 0.004;
const STEP_S: f64 = 0.0005;

/// A packet of the peer, whose bytes do not matter here.
#[derive(Clone, Debug, PartialEq)]
struct Packet {
    segment: Segment,
    bare: bool,
}

impl Clamped for Packet {
    fn set_window(&mut self, window: u16) {
        self.segment.window = window;
    }

    fn bare_ack(&self) -> Packet {
        Packet { segment: Segment { payload: 0, flags: ACK, ..self.segment }, bare: true }
    }
}

fn segment(flags: u8) -> Segment {
    Segment {
        sequence: 0,
        payload: 0,
        flags,
        ack: 0,
        window: u16::MAX,
        scale: None,
        largest_segment: None,
        timestamps: None,
        sack: SackBlocks::default(),
    }
}

/// How a connection begins.
#[derive(Clone, Copy)]
struct Opening {
    /// Window scales that the peer and the host offer.
    scale: Option<u64>,
    own: Option<u64>,
    start: u32,
}

impl Opening {
    fn drawn(draws: &mut Generator) -> Opening {
        let scale = [None, Some(0), Some(7), Some(14)][draws.below(4) as usize];
        Opening { scale, own: [None, Some(7)][draws.below(2) as usize], start: draws.bits32() }
    }
}

const USUAL: Opening = Opening { scale: Some(7), own: Some(7), start: u32::MAX - 4999 };

/// A host that sends as much as its window lets it, and a peer that acknowledges after half a round-trip time each way. The
/// window is all that limits the host: what it does besides is what a TCP sender must do.
struct Connection {
    clamp: WindowClamp<Packet>,
    start: u32,
    scale: u32,
    real_window: u32,
    sent: u32,
    acked: u32,
    /// Up to where the host may send, in bytes of payload.
    room: u32,
    /// Acknowledgements under way: when they are here, and what they acknowledge.
    way: VecDeque<(f64, u32)>,
    stopped_in_flight: u32,
    /// Every second acknowledgement is faster than the one before it.
    overtaking: bool,
    clock: u64,
    newest_clock: u64,
}

impl Connection {
    fn new(mut clamp: WindowClamp<Packet>, opening: Opening) -> Connection {
        let Opening { scale, own, start } = opening;
        let syn = Segment { sequence: start, scale: own, largest_segment: LARGEST, ..segment(SYN) };
        clamp.left(&Segment { timestamps: Some(0), ..syn });
        let scale_in_force = scale.filter(|_| own.is_some()).unwrap_or(0) as u32;
        let mut host = Connection {
            clamp,
            start,
            scale: scale_in_force,
            real_window: (65535u32 << scale_in_force).min(400_000),
            sent: 0,
            acked: 0,
            room: 0,
            way: VecDeque::new(),
            stopped_in_flight: 0,
            overtaking: false,
            clock: 5,
            newest_clock: 0,
        };
        let answer = Segment { ack: start.wrapping_add(1), scale, ..segment(SYN | ACK) };
        host.come(Segment { largest_segment: LARGEST, timestamps: Some(5 << 32), ..answer }, 0.0);
        host
    }

    /// Passes a packet of the peer through the clamp to the host.
    fn come(&mut self, segment: Segment, now: f64) {
        let mut packet = Packet { segment, bare: false };
        self.clamp.arrived(&mut packet, &segment, now);
        self.take(&packet.segment);
    }

    /// Delivers a packet of the peer, or one that looks so, to the host.
    fn take(&mut self, segment: &Segment) {
        let ack = segment.ack.wrapping_sub(self.start).wrapping_sub(1);
        let clock = segment.timestamps.map_or(0, |both| both >> 32);
        if clock < self.newest_clock || ack < self.acked {
            return; // what was overtaken says nothing (RFC 7323, 5.3; RFC 9293, 3.10.7.4)
        }
        self.newest_clock = clock;
        self.acked = ack;
        let scale = if segment.has(SYN) { 0 } else { self.scale };
        self.room = ack + (u32::from(segment.window) << scale);
        self.stopped_in_flight += u32::from(segment.window == 0 && self.sent > self.acked);
    }

    /// Lets the host and its peer go on; returns when that was.
    fn run(&mut self, from: f64, until: f64) -> f64 {
        let mut now = from;
        while now < until {
            now += STEP_S;
            while self.sent + MSS <= self.room {
                let sequence = self.start.wrapping_add(1).wrapping_add(self.sent);
                self.clamp.left(&Segment { sequence, payload: MSS, ..segment(ACK | PSH) });
                self.sent += MSS;
                self.way.push_back((now + RTT_S, self.sent));
            }
            while self.way.front().is_some_and(|(due, _)| *due <= now) {
                let few = if self.overtaking { self.way.len().min(2) } else { 1 };
                let upto: Vec<u32> = self.way.drain(..few).map(|(_, ack)| ack).collect();
                let acks: Vec<Segment> = upto.into_iter().map(|ack| self.ack(ack)).collect();
                acks.into_iter().rev().for_each(|ack| self.come(ack, now));
            }
            if self.clamp.deadline().is_some_and(|due| due <= now) {
                let update = self.clamp.update(now).expect("a deadline without a window");
                self.take(&update.segment);
            }
        }
        now
    }

    /// Returns the peer's ACK, with its real window.
    fn ack(&mut self, upto: u32) -> Segment {
        self.clock += 1;
        Segment {
            ack: self.start.wrapping_add(1).wrapping_add(upto),
            window: (self.real_window >> self.scale) as u16,
            timestamps: Some(self.clock << 32 | 9),
            ..segment(ACK)
        }
    }

    /// Sets the rate that the controller decides.
    fn decide(&mut self, bytes_per_s: f64, now: f64) {
        self.clamp.set_rate(bytes_per_s, now);
        if let Some(update) = self.clamp.update(now) {
            self.take(&update.segment);
        }
    }
}

#[test]
fn a_granted_sender_keeps_to_its_rate_and_a_stopped_one_to_its_window() {
    let mut draws = Generator::new(5);
    for _ in 0..trials(60) {
        let rate = 3e5 + draws.unit() * 9.7e6;
        let mut host = Connection::new(WindowClamp::new(0.002), Opening::drawn(&mut draws));
        host.decide(rate, 0.0);
        let now = host.run(0.0, 0.2);
        let most = rate.min(f64::from(host.real_window) / (RTT_S + 0.001));
        let step = f64::from(2u32 << host.scale);
        let slack = 3.0 * f64::from(MSS) + rate * 0.003 + step; // the burst, steps of the window
        let sent = f64::from(host.sent);
        assert!(
            most * 0.2 * 0.85 - slack <= sent && sent <= rate * 0.2 + 65535.0 + slack,
            "{sent} B at {rate}"
        );
        host.decide(0.0, now);
        let now = host.run(now, 0.3);
        let further = f64::from(host.sent) - sent;
        assert!(further <= (2.0 * f64::from(MSS)).max(rate * 0.002) + 2.0 * f64::from(MSS) + step);
        assert_eq!(host.acked, host.sent, "all that has left is acknowledged: nothing to be sent twice");
        assert!(host.scale == 14 || host.stopped_in_flight == 0, "a window was closed over what had left");
        host.decide(rate, now);
        host.run(now, 0.5);
        assert!(f64::from(host.sent) > sent + (most * 0.2 * 0.8).min(10.0 * f64::from(MSS)));
    }
}

#[test]
fn an_acknowledgement_that_was_overtaken_does_not_close_a_granted_window() {
    let mut host = Connection::new(WindowClamp::new(0.002), USUAL);
    host.overtaking = true;
    host.decide(1e6, 0.0);
    let now = host.run(0.0, 0.2);
    assert!(f64::from(host.sent) >= 0.85 * 0.2e6);
    host.decide(0.0, now);
    let now = host.run(now, 0.4);
    assert!(host.way.is_empty() && host.acked == host.sent);
    let (old, sent) = (host.ack(host.sent - MSS), host.sent);
    host.clock -= 2;
    let same = host.ack(host.sent); // acknowledges as much, but was sent before the newest
    host.come(old, now);
    host.come(same, now);
    host.decide(1e6, now);
    assert!(host.room >= sent + MSS, "the host got its window by a packet that it believes");
    host.run(now, 0.6);
    assert!(f64::from(host.sent - sent) >= 0.85 * 0.2e6);
}

#[test]
fn without_a_limit_packets_pass_as_they_are() {
    let mut draws = Generator::new(6);
    for _ in 0..trials(20) {
        let mut host = Connection::new(WindowClamp::new(0.002), Opening::drawn(&mut draws));
        host.run(0.0, 0.05);
        assert!(host.sent > 10 * MSS);
        let came = Packet { segment: host.ack(host.acked), bare: false };
        let mut given = came.clone();
        host.clamp.arrived(&mut given, &came.segment, 0.06);
        assert_eq!((given, host.clamp.deadline()), (came, None));
    }
}

#[test]
fn a_flow_that_is_known_to_be_large_sends_nothing_before_its_grant() {
    let mut clamp = WindowClamp::new(0.002);
    clamp.set_rate(0.0, 0.0);
    let mut host = Connection::new(clamp, USUAL);
    let now = host.run(0.0, 0.1);
    assert_eq!(host.sent, 0);
    host.decide(1e6, now);
    assert!(host.room >= MSS, "the grant is advertised at once");
    host.run(now, 0.2);
    assert!((0.9e5..1.1e5).contains(&f64::from(host.sent)));
}

#[test]
fn a_connection_whose_beginning_was_not_seen_is_left_alone() {
    let mut clamp = WindowClamp::new(0.002);
    clamp.set_rate(0.0, 0.0);
    let came = Packet { segment: Segment { ack: 5000, ..segment(ACK) }, bare: false };
    let mut given = came.clone();
    clamp.arrived(&mut given, &came.segment, 0.0);
    assert!(!clamp.is_known() && given == came && clamp.update(1.0).is_none());
}

#[test]
fn an_update_is_a_bare_acknowledgement_and_comes_once() {
    let mut host = Connection::new(WindowClamp::new(0.002), USUAL);
    let now = host.run(0.0, 0.01);
    host.clamp.set_rate(0.0, now);
    let now = host.run(now, 0.02);
    let answer = Segment { payload: 6, flags: ACK | PSH, ..host.ack(host.sent) };
    host.come(answer, now);
    assert_eq!(host.room, host.sent);
    host.clamp.set_rate(f64::INFINITY, now);
    let update = host.clamp.update(now).expect("a window");
    assert!(update.bare && update.segment.window > 0);
    assert!(host.clamp.update(now).is_none());
}

/// Linux bounds segments by half the largest window that was advertised to it, and goes on so long after windows have grown.
#[test]
fn a_host_whose_segments_were_small_when_its_flow_was_joined_is_not_starved() {
    let sent = |most: u32| {
        // 1500 bytes ahead: three of the small segments are one of the large ones, and some
        let opening = Opening { scale: Some(9), own: Some(9), ..USUAL };
        let mut host = Connection::new(WindowClamp::new(0.0012), opening);
        host.clamp.join(9, 512, most);
        host.clamp.set_rate(0.0, 0.0);
        host.clamp.set_rate(1.25e6, 0.0);
        host.run(0.0, 1.0);
        host.sent
    };
    assert!(sent(MSS) > 400_000, "two segments a round trip of 4 ms are 0.7 MB/s");
    assert!(
        sent(0) < 100_000,
        "it waits for room for a whole segment, and the clamp for it to use what it has"
    );
}

/// Of scale 8, a window ends up to 255 bytes before what has left, where no whole segment has room.
#[test]
fn what_is_due_is_done_once_and_each_update_lets_a_segment_go() {
    for scale in [0, 7, 8, 12] {
        let mut clamp = WindowClamp::<Packet>::new(0.01);
        let begin = |flags| Segment { scale: Some(scale), largest_segment: LARGEST, ..segment(flags) };
        clamp.left(&begin(SYN));
        let answer = Segment { ack: 1, ..begin(SYN | ACK) };
        clamp.arrived(&mut Packet { segment: answer, bare: false }, &answer, 0.0);
        clamp.set_rate(0.0, 0.0);
        clamp.set_rate(1_648_272.5, 0.0001);
        let (mut highest, mut updates, mut last) = (1u32, 0, 0.0);
        for round in 0u32..400 {
            if round % 3 == 0 {
                let ack = Segment { ack: highest, ..segment(ACK) };
                clamp.arrived(&mut Packet { segment: ack, bare: false }, &ack, last);
            }
            if let Some(due) = clamp.deadline() {
                last = due.max(last);
                let update = clamp.update(last);
                assert!(clamp.deadline().is_none_or(|next| next > last), "scale {scale}: it is due again");
                updates += u32::from(update.is_some());
            }
            let payload = MSS + round % 7 * 31;
            clamp.left(&Segment { sequence: highest, payload, ..segment(PSH) });
            highest += payload;
        }
        assert!(updates > 100, "{updates} updates");
    }
}

/// At 32 Gbit/s more than half of all sequence numbers pass in a second.
#[test]
fn a_fast_flow_that_has_paused_for_a_second_may_send() {
    let mut clamp = WindowClamp::<Packet>::new(0.002);
    let begin = |flags| Segment { scale: Some(7), largest_segment: LARGEST, ..segment(flags) };
    clamp.left(&begin(SYN));
    let answer = Segment { ack: 1, ..begin(SYN | ACK) };
    clamp.arrived(&mut Packet { segment: answer, bare: false }, &answer, 0.0);
    clamp.set_rate(0.0, 0.0);
    clamp.set_rate(4e9, 0.0);
    clamp.set_rate(0.0, 1.0); // it has given its grant back, but may send what it had been granted
    let mut given = Packet { segment: Segment { ack: 1, ..segment(ACK) }, bare: false };
    let came = given.segment;
    clamp.arrived(&mut given, &came, 1.0);
    let window = u32::from(given.segment.window) << 7;
    assert!((MSS..=8_000_000 + (1 << 7)).contains(&window), "{window} B, not the 8 MB of 2 ms");
}

#[test]
fn a_syn_whose_option_is_longer_than_tcps_bounds_no_segment_by_it() {
    for (largest, segment_bytes) in [(0, 1), (536, 524), (1 << 16, MSS), (1 << 63, MSS), (u64::MAX, MSS)] {
        let mut clamp = WindowClamp::<Packet>::new(0.002);
        let begin = |flags| Segment { timestamps: Some(1), largest_segment: LARGEST, ..segment(flags) };
        clamp.left(&begin(SYN));
        let answer = Segment { ack: 1, largest_segment: Some(largest), ..begin(SYN | ACK) };
        clamp.arrived(&mut Packet { segment: answer, bare: false }, &answer, 0.0);
        assert_eq!(clamp.segment_bytes(), i64::from(segment_bytes), "{largest}");
    }
    let mut clamp = WindowClamp::<Packet>::new(0.002);
    clamp.left(&Segment { largest_segment: Some(0), ..segment(SYN) });
    assert_eq!(clamp.segment_bytes(), 1, "what is left is divided by it");
}

#[test]
fn an_answer_to_a_syn_that_comes_twice_makes_no_segment_smaller() {
    let mut clamp = WindowClamp::<Packet>::new(0.002);
    let begin = |flags| Segment { timestamps: Some(1), largest_segment: LARGEST, ..segment(flags) };
    for _ in 0..2 {
        clamp.left(&begin(SYN));
        for _ in 0..3 {
            let answer = Segment { ack: 1, ..begin(SYN | ACK) };
            clamp.arrived(&mut Packet { segment: answer, bare: false }, &answer, 0.0);
            assert_eq!(clamp.segment_bytes(), i64::from(MSS));
        }
    }
}
