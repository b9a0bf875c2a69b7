//! Windows that hosts get, as the Python agent wrote them (recorded at d7038cc), bit for bit.

mod support;

use agent::admission::{TcpBytes, WindowClamp};
use support::Words;

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex")).collect()
}

fn hex(data: &[u8]) -> String {
    data.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn seconds(word: &str) -> f64 {
    word.parse().expect("a float")
}

#[test]
fn windows_are_told_as_recorded() {
    let mut clamp = WindowClamp::<TcpBytes>::new(0.0);
    for (at, line) in include_str!("vectors/window_clamp.txt").lines().enumerate().skip(1) {
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
                assert_eq!(said, words.word(), "line {}: {line}", at + 1);
            }
            "update" => {
                let update = clamp.update(seconds(words.word()));
                let said = update.map_or("-".into(), |packet| hex(&packet.data));
                assert_eq!(said, words.word(), "line {}: {line}", at + 1);
            }
            "rate" => clamp.set_rate(seconds(words.word()), seconds(words.word())),
            _ => clamp.join(words.number(), words.number(), words.number()),
        }
        assert_eq!(words.word(), "|", "line {}: {line}", at + 1);
        let said = (clamp.sent_bytes(), clamp.segment_bytes(), u8::from(clamp.is_known()));
        assert_eq!(said, (words.number(), words.number(), words.number()), "line {}: {line}", at + 1);
        let due = Some(words.word()).filter(|word| *word != "-").map(seconds);
        assert_eq!(clamp.deadline(), due, "line {}: {line}", at + 1);
    }
}
