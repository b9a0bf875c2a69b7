use agent::coding::WindowEstimate;

use super::{lines, optional};
use crate::support::tried;

#[test]
fn windows_are_as_recorded() {
    let (mut window, mut seen) = (WindowEstimate::default(), 0);
    for (kind, mut words) in lines(include_str!("../../vectors/window.txt")) {
        seen += 1;
        match kind {
            "flow" => {
                window = WindowEstimate::default();
                continue;
            }
            "sent" => {
                let (sequence, payload) = (words.number(), words.number());
                window.sent(sequence, payload, optional(&mut words).unwrap_or(payload));
            }
            "acked" => window.acknowledged(words.number()),
            other => panic!("no {other}"),
        }
        assert_eq!(window.packets(), words.number::<u32>());
    }
    assert_eq!(seen, tried(20 * 37));
}
