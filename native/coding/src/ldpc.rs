//! LDPC-staircase code (RFC 5170; RFC 6816) with left degree 3.
//!
//! Row j of the parity check matrix holds some sources and repairs j and j - 1, so repair j = repair j - 1 + the
//! sources of row j. Sources are spread as in RFC 5170 section 5.4, with the Park-Miller generator of section 5.7; rows
//! with fewer than two sources get more. Where there are only r <= 3 rows, which the RFC does not mean, each source is
//! in max(1, r - 1) of them: were all sources in all rows, every second repair would be zeros.

use crate::error::Error;
use crate::kernels::add;
use crate::rebuilt::Rebuilt;

const LEFT_DEGREE: usize = 3;

/// The "minimal standard" generator, scaled as in RFC 5170 section 5.7.
struct ParkMiller(u64);

impl ParkMiller {
    const MODULUS: u64 = 0x7FFF_FFFF;

    fn new(seed: u32) -> Self {
        Self(u64::from(seed) % (Self::MODULUS - 1) + 1)
    }

    /// Returns the next number in 0 .. limit - 1.
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0 * 16807 % Self::MODULUS;
        (self.0 * limit as u64 / Self::MODULUS) as usize
    }
}

/// Returns the sources in each of the r rows of the parity check matrix, ascending.
pub fn rows(k: usize, r: usize, seed: u32) -> Vec<Vec<usize>> {
    let mut random = ParkMiller::new(seed);
    let degree = LEFT_DEGREE.min(r.saturating_sub(1).max(1));
    let mut holds = vec![false; r * k];
    let mut choices: Vec<usize> = (0..degree * k).map(|index| index % r).collect();
    let mut first = 0;
    for source in 0..k {
        for _ in 0..degree {
            let row = if choices[first..].iter().any(|&row| !holds[row * k + source]) {
                let place = loop {
                    let place = first + random.below(choices.len() - first);
                    if !holds[choices[place] * k + source] {
                        break place;
                    }
                };
                let row = choices[place];
                choices[place] = choices[first];
                first += 1;
                row
            } else {
                loop {
                    let row = random.below(r);
                    if !holds[row * k + source] {
                        break row;
                    }
                }
            };
            holds[row * k + source] = true;
        }
    }
    // two sources in every row, or every second repair would be zeros
    let least = if k > 2 { 2 } else { 1 };
    for members in holds.chunks_exact_mut(k) {
        while members.iter().filter(|&&held| held).count() < least {
            members[random.below(k)] = true;
        }
    }
    holds.chunks_exact(k).map(|members| (0..k).filter(|&source| members[source]).collect()).collect()
}

/// Encodes `sources` into `out`: a repair of `width` bytes for each of the rows.
pub fn encode(rows: &[Vec<usize>], sources: &[&[u8]], width: usize, out: &mut [u8]) {
    out.fill(0);
    for (j, members) in rows.iter().enumerate() {
        let (before, rest) = out.split_at_mut(j * width);
        let repair = &mut rest[..width];
        if j > 0 {
            repair.copy_from_slice(&before[(j - 1) * width..]);
        }
        members.iter().for_each(|&source| add(repair, sources[source]));
    }
}

pub fn decode(
    rows: &[Vec<usize>],
    sources: &[Option<&[u8]>],
    repairs: &[(usize, &[u8])],
    width: usize,
) -> Result<Rebuilt, Error> {
    let k = sources.len();
    let mut columns: Vec<Option<&[u8]>> = sources.to_vec();
    columns.resize(k + rows.len(), None);
    for &(index, symbol) in repairs {
        columns[k + index] = Some(symbol);
    }
    let mut system = System::new(rows, &columns, k, width);
    let mut solved = system.peel()?;
    solved.append(&mut system.eliminate()?);
    solved.retain(|&(column, _)| column < k);
    solved.sort_unstable_by_key(|&(column, _)| column);
    let mut symbols = Vec::with_capacity(solved.len() * width);
    solved.iter().for_each(|(_, symbol)| symbols.extend_from_slice(symbol));
    Ok(Rebuilt { indices: solved.into_iter().map(|(column, _)| column).collect(), symbols })
}

/// A set of columns: sources are 0 .. k - 1, repairs follow.
type Columns = [u64; 8];

fn has(set: &Columns, column: usize) -> bool {
    set[column / 64] >> (column % 64) & 1 != 0
}

fn toggle(set: &mut Columns, column: usize) {
    set[column / 64] ^= 1 << (column % 64);
}

/// Returns the number of columns, and the lowest (0 if there is none).
fn size_and_lowest(set: &Columns) -> (u32, usize) {
    let size = set.iter().map(|word| word.count_ones()).sum();
    let word = set.iter().position(|&word| word != 0).unwrap_or(0);
    (size, word * 64 + set[word].trailing_zeros() as usize % 64)
}

/// One row of the parity check matrix: what is unknown in it, and the sum of what is known.
struct Row {
    unknown: Columns,
    value: Vec<u8>,
}

impl Row {
    fn agrees(&self) -> Result<(), Error> {
        if self.unknown == [0; 8] && self.value.iter().any(|&byte| byte != 0) {
            return Err(Error::Contradiction("parity checks do not agree with the unit's symbols".into()));
        }
        Ok(())
    }

    fn add(&mut self, other: &Row) {
        for (word, other) in self.unknown.iter_mut().zip(other.unknown) {
            *word ^= other;
        }
        add(&mut self.value, &other.value);
    }
}

/// The rows of one unit. At most 255 sources and 255 repairs: they fit `Columns`.
pub struct System {
    rows: Vec<Row>,
}

impl System {
    /// Makes a decoder. `columns` are the unit's k sources and its repairs, None where unknown.
    pub fn new(rows: &[Vec<usize>], columns: &[Option<&[u8]>], k: usize, width: usize) -> System {
        let rows = rows.iter().enumerate().map(|(j, members)| {
            let mut row = Row { unknown: [0; 8], value: vec![0; width] };
            let staircase = [k + j, k + j.saturating_sub(1)];
            for &column in members.iter().chain(&staircase[..if j > 0 { 2 } else { 1 }]) {
                match columns[column] {
                    Some(symbol) => add(&mut row.value, symbol),
                    None => toggle(&mut row.unknown, column),
                }
            }
            row
        });
        System { rows: rows.collect() }
    }

    /// Solve rows with one unknown until there is none left: columns and their symbols.
    pub fn peel(&mut self) -> Result<Vec<(usize, Vec<u8>)>, Error> {
        let mut rows = Vec::new();
        while let Some(row) = self.rows.iter().position(|row| size_and_lowest(&row.unknown).0 == 1) {
            let (_, column) = size_and_lowest(&self.rows[row].unknown);
            let value = self.rows[row].value.clone();
            for other in self.rows.iter_mut().filter(|other| has(&other.unknown, column)) {
                add(&mut other.value, &value);
                toggle(&mut other.unknown, column);
            }
            rows.push((column, value));
        }
        self.rows.iter().try_for_each(Row::agrees)?;
        Ok(rows)
    }

    /// Solves the rows that peeling left, by Gauss-Jordan elimination over GF(2).
    pub fn eliminate(self) -> Result<Vec<(usize, Vec<u8>)>, Error> {
        let mut rows: Vec<Row> = self.rows.into_iter().filter(|row| row.unknown != [0; 8]).collect();
        let mut solved: Vec<Row> = Vec::new();
        while let Some(row) = rows.pop() {
            if row.unknown == [0; 8] {
                row.agrees()?;
                continue;
            }
            let (_, pivot) = size_and_lowest(&row.unknown);
            for other in rows.iter_mut().chain(&mut solved) {
                if has(&other.unknown, pivot) {
                    other.add(&row);
                }
            }
            solved.push(row);
        }
        let alone = solved.into_iter().filter(|row| size_and_lowest(&row.unknown).0 == 1);
        Ok(alone.map(|row| (size_and_lowest(&row.unknown).1, row.value)).collect())
    }
}
