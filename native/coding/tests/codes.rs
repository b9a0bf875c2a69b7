//! The codes: any k of k + r where that is promised, failure rates where they are published, contradictions detected.

mod random;

use coding::packets::{Received, Repairs};
use coding::{Code, Error, Kernel};
use random::Random;
use trials::trials;

struct Unit {
    width: usize,
    sources: Vec<u8>,
    repairs: Vec<u8>,
}

impl Unit {
    fn new(code: Code, k: usize, r: usize, width: usize, seed: u32, random: &mut Random) -> Unit {
        let sources = random.bytes(k * width);
        let mut repairs = vec![0; r * width];
        let rows: Vec<&[u8]> = sources.chunks_exact(width).collect();
        code.encode(Kernel::best(), seed, &rows, width, &mut repairs).unwrap();
        Unit { width, sources, repairs }
    }

    fn repair(&self, index: usize) -> &[u8] {
        &self.repairs[index * self.width..][..self.width]
    }

    /// Decode without the lost sources, with those repairs; whatever is found must be right. How many were found.
    fn decode(&self, code: Code, seed: u32, lost: &[usize], got: &[usize]) -> Result<usize, Error> {
        let k = self.sources.len() / self.width;
        let r = self.repairs.len() / self.width;
        let mut sources: Vec<Option<&[u8]>> = self.sources.chunks_exact(self.width).map(Some).collect();
        lost.iter().for_each(|&i| sources[i] = None);
        let repairs: Vec<(usize, &[u8])> = got.iter().map(|&j| (j, self.repair(j))).collect();
        let mut decoded = None;
        for kernel in Kernel::available() {
            let rebuilt = code.decode(kernel, seed, r, &sources, &repairs, self.width)?;
            assert!(rebuilt.indices.iter().all(|index| lost.contains(index)));
            assert!(rebuilt.indices.windows(2).all(|pair| pair[0] < pair[1]));
            assert_eq!(rebuilt.symbols.len(), rebuilt.indices.len() * self.width);
            for (&index, symbol) in rebuilt.indices.iter().zip(rebuilt.symbols.chunks_exact(self.width)) {
                assert_eq!(symbol, &self.sources[index * self.width..][..self.width], "{code:?} of {k}");
            }
            assert_eq!(*decoded.get_or_insert(rebuilt.indices.len()), rebuilt.indices.len());
        }
        Ok(decoded.unwrap())
    }
}

#[test]
fn any_k_of_k_plus_r_symbols_give_an_mds_unit() {
    let mut random = Random(2);
    for _ in 0..trials(400) {
        let most = if cfg!(miri) { 12 } else { 64 };
        let (k, r) = (random.within(1, 2 * most), random.within(1, most));
        let width = random.within(1, 100);
        let unit = Unit::new(Code::Mds, k, r, width, 0, &mut random);
        let losses = random.within(1, k.min(r));
        let lost = random.sample(k, losses);
        let got = random.sample(r, losses);
        assert_eq!(unit.decode(Code::Mds, 0, &lost, &got), Ok(losses), "k = {k}, r = {r}");
    }
}

#[test]
fn every_pattern_of_a_small_mds_unit_decodes() {
    let (k, r) = if cfg!(miri) { (3, 2) } else { (6, 5) };
    let unit = Unit::new(Code::Mds, k, r, 70, 0, &mut Random(3));
    for pattern in 0..1u32 << (k + r) {
        if pattern.count_ones() as usize != k {
            continue;
        }
        let lost: Vec<usize> = (0..k).filter(|i| pattern >> i & 1 == 0).collect();
        let got: Vec<usize> = (0..r).filter(|j| pattern >> (k + j) & 1 != 0).collect();
        assert_eq!(unit.decode(Code::Mds, 0, &lost, &got), Ok(lost.len()));
    }
}

#[test]
#[cfg(not(miri))]
fn the_largest_mds_unit_decodes() {
    let (k, r) = (192, 64);
    let mut random = Random(4);
    let unit = Unit::new(Code::Mds, k, r, 64, 0, &mut random);
    let lost = random.sample(k, r);
    let got: Vec<usize> = (0..r).collect();
    assert_eq!(unit.decode(Code::Mds, 0, &lost, &got), Ok(r));
}

#[test]
fn whatever_is_rebuilt_is_right() {
    let mut random = Random(5);
    for code in Code::ALL {
        for _ in 0..trials(400) {
            let (k, r) = (random.within(1, 40), random.within(1, 16));
            let (width, seed) = (random.within(1, 90), random.next() as u32);
            let unit = Unit::new(code, k, r, width, seed, &mut random);
            let lost = {
                let count = random.within(0, k);
                random.sample(k, count)
            };
            let got = {
                let count = random.within(0, r);
                random.sample(r, count)
            };
            let rebuilt = unit.decode(code, seed, &lost, &got).unwrap();
            assert!(rebuilt <= got.len().min(lost.len()));
        }
    }
}

#[test]
#[cfg(not(miri))]
fn rlc_fails_as_often_as_random_matrices() {
    let mut random = Random(6);
    for (surplus, expected, tolerance) in [(0, 1.0 / 255.0, 0.0015), (1, 1.0 / 65280.0, 0.0005)] {
        let failures = (0..8000).filter(|_| {
            let seed = random.next() as u32;
            let unit = Unit::new(Code::Rlc, 16, 12, 1, seed, &mut random);
            let (lost, got) = (random.sample(16, 6), random.sample(12, 6 + surplus));
            unit.decode(Code::Rlc, seed, &lost, &got) != Ok(6)
        });
        let share = failures.count() as f64 / 8000.0;
        assert!((share - expected).abs() < tolerance, "{share} at surplus {surplus}");
    }
}

#[test]
#[cfg(not(miri))]
fn ldpc_peeling_fails_as_often_as_published() {
    let mut random = Random(7);
    let symbol: &[u8] = &[0];
    let failures = (0..10_000).filter(|_| {
        let rows = coding::ldpc::rows(32, 8, random.next() as u32);
        let mut columns = vec![Some(symbol); 40];
        random.sample(32, 4).into_iter().for_each(|source| columns[source] = None);
        coding::ldpc::System::new(&rows, &columns, 32, 1).peel().unwrap().len() < 4
    });
    let share = failures.count() as f64 / 10_000.0;
    assert!((share - 0.138).abs() < 0.02, "{share}");
}

#[test]
fn a_wrong_symbol_is_noticed_where_there_is_one_to_spare() {
    let mut random = Random(8);
    for code in [Code::Rlc, Code::Mds, Code::Ldpc] {
        for _ in 0..trials(200) {
            let (k, seed) = (random.within(4, 40), random.next() as u32);
            let mut unit = Unit::new(code, k, 6, 40, seed, &mut random);
            let place = random.within(0, unit.repairs.len() - 1);
            unit.repairs[place] ^= random.within(1, 255) as u8;
            let lost = [random.within(0, k - 1)];
            let decoded = unit.decode(code, seed, &lost, &[0, 1, 2, 3, 4, 5]);
            assert!(matches!(decoded, Err(Error::Contradiction(_))), "{code:?} {decoded:?}");
        }
    }
}

#[test]
fn packets_of_any_lengths_come_back() {
    let mut random = Random(9);
    for code in Code::ALL {
        for _ in 0..trials(200) {
            let (k, r, seed) = (random.within(1, 40), random.within(1, 8), random.next() as u32);
            let packets: Vec<Vec<u8>> = (0..k)
                .map(|_| {
                    let length = random.within(1, 300);
                    random.bytes(length)
                })
                .collect();
            let all: Vec<&[u8]> = packets.iter().map(|packet| &packet[..]).collect();
            let made = Repairs::encode(code, Kernel::best(), &all, r, seed).unwrap();
            let symbols: Vec<Vec<u8>> =
                made.symbols().map(|(length, packet)| [length, packet].concat()).collect();
            let repairs: Vec<(usize, &[u8])> = symbols.iter().map(|symbol| &symbol[..]).enumerate().collect();
            assert!(repairs.iter().all(|(_, symbol)| symbol.len() == made.symbol_bytes()));
            let lost = random.within(0, k - 1);
            let mut known: Vec<Option<&[u8]>> = all.iter().copied().map(Some).collect();
            known[lost] = None;
            let unit = Received::pack(&known, &repairs).unwrap();
            let rebuilt = unit.decode(code, Kernel::best(), r, seed).unwrap();
            assert_eq!(rebuilt, vec![(lost, packets[lost].clone())], "{code:?} k = {k}, r = {r}");
        }
    }
}

#[test]
fn units_that_contradict_themselves_are_reported() {
    let decode = |packets: &[Option<&[u8]>], repairs: &[(usize, &[u8])]| {
        Received::pack(packets, repairs)?.decode(Code::Xor, Kernel::best(), 1, 0)
    };
    let contradiction = |symbol: &[u8]| {
        let decoded = decode(&[None], &[(0, symbol)]);
        assert!(matches!(decoded, Err(Error::Contradiction(_))), "{decoded:?}");
    };
    assert_eq!(decode(&[None], &[(0, b"\x00\x03abc")]), Ok(vec![(0, b"abc".to_vec())]));
    assert_eq!(decode(&[None], &[(0, b"\x00\x02ab\0")]), Ok(vec![(0, b"ab".to_vec())]));
    contradiction(b"\x00\x00abc");
    contradiction(b"\x00\x04abc");
    contradiction(b"\xff\xffabc");
    contradiction(b"\x00\x02abc");
    for packet in [&b"abcd"[..], b""] {
        let decoded = decode(&[Some(packet), None], &[(0, b"\x00\x03abc")]);
        assert!(matches!(decoded, Err(Error::Contradiction(_))), "{decoded:?}");
    }
    for wrong in
        [&[][..], &[(0, &b"\x00\x01"[..])], &[(0, b"\x00\x01a"), (1, b"\x00\x01ab")], &[(1, b"\x00\x01a")]]
    {
        assert!(matches!(decode(&[None], wrong), Err(Error::Invalid(_))), "{wrong:?}");
    }
    let encode = |packets: &[&[u8]], r| Repairs::encode(Code::Mds, Kernel::best(), packets, r, 0);
    assert!(encode(&[b"a", b""], 1).is_err());
    assert!(encode(&[&[0; 65536]], 1).is_err());
    assert!(encode(&[&[1; 65535]], 256).is_err());
}
