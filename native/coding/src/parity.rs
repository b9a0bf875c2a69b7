//! Parity code: repair j is the XOR of the sources i with i mod r = j, so bursts spread over the repairs.

use crate::error::Error;
use crate::kernels::add;
use crate::rebuilt::Rebuilt;

/// Encodes `sources` into `out`, r rows of `width` bytes.
pub fn encode(sources: &[&[u8]], width: usize, out: &mut [u8]) {
    out.fill(0);
    let r = out.len() / width;
    for (i, source) in sources.iter().enumerate() {
        add(&mut out[i % r * width..][..width], source);
    }
}

pub fn decode(
    r: usize,
    sources: &[Option<&[u8]>],
    repairs: &[(usize, &[u8])],
    width: usize,
) -> Result<Rebuilt, Error> {
    let mut rebuilt = Vec::new();
    for &(index, repair) in repairs {
        let own = || (index..sources.len()).step_by(r);
        let mut missing = own().filter(|&i| sources[i].is_none());
        let lost = missing.next();
        if missing.next().is_some() {
            continue;
        }
        let mut rest = repair.to_vec();
        own().filter_map(|i| sources[i]).for_each(|source| add(&mut rest, source));
        match lost {
            Some(i) => rebuilt.push((i, rest)),
            None if rest.iter().any(|&byte| byte != 0) => {
                return Err(Error::Contradiction(format!("parity {index} does not agree with its sources")));
            }
            None => {}
        }
    }
    rebuilt.sort_unstable_by_key(|&(i, _)| i);
    let mut symbols = Vec::with_capacity(rebuilt.len() * width);
    rebuilt.iter().for_each(|(_, symbol)| symbols.extend_from_slice(symbol));
    Ok(Rebuilt { indices: rebuilt.into_iter().map(|(i, _)| i).collect(), symbols })
}
