//! Decoding of any linear code over GF(256) by elimination of the losses: (repairs received) x (sources missing).

use crate::error::Error;
use crate::field::{inverse, PRODUCT};
use crate::kernels::{product, Kernel};
use crate::rebuilt::Rebuilt;

/// A small matrix, row by row.
struct Matrix {
    width: usize,
    cells: Vec<u8>,
}

impl Matrix {
    fn row(&self, row: usize) -> &[u8] {
        &self.cells[row * self.width..][..self.width]
    }

    fn swap(&mut self, a: usize, b: usize) {
        if a != b {
            let (a, b) = (a.min(b), a.max(b));
            let (head, tail) = self.cells.split_at_mut(b * self.width);
            head[a * self.width..][..self.width].swap_with_slice(&mut tail[..self.width]);
        }
    }

    /// Eliminates the first `columns` columns (Gauss-Jordan); returns their pivots, in order of the rows.
    fn reduce(&mut self, columns: usize) -> Vec<usize> {
        let rows = self.cells.len() / self.width;
        let mut pivots = Vec::with_capacity(columns.min(rows));
        let mut pivot = vec![0; self.width];
        for column in 0..columns {
            let row = pivots.len();
            let Some(chosen) = (row..rows).find(|&row| self.row(row)[column] != 0) else {
                continue;
            };
            self.swap(row, chosen);
            let scale = &PRODUCT[inverse(self.row(row)[column]) as usize];
            for (pivot, cell) in pivot.iter_mut().zip(&mut self.cells[row * self.width..]) {
                *cell = scale[*cell as usize];
                *pivot = *cell;
            }
            for (other, cells) in self.cells.chunks_exact_mut(self.width).enumerate() {
                if other != row && cells[column] != 0 {
                    let products = &PRODUCT[cells[column] as usize];
                    for (cell, &of_pivot) in cells.iter_mut().zip(&pivot) {
                        *cell ^= products[of_pivot as usize];
                    }
                }
            }
            pivots.push(column);
        }
        pivots
    }
}

/// Rebuilds the missing sources. `coefficients` are the rows of k of the repairs, in their order. All sizes fit:
/// `Code::decode` has checked.
pub fn decode(
    kernel: Kernel,
    coefficients: &[u8],
    sources: &[Option<&[u8]>],
    repairs: &[(usize, &[u8])],
    width: usize,
) -> Result<Rebuilt, Error> {
    let (k, m) = (sources.len(), repairs.len());
    if m == 0 {
        return Ok(Rebuilt { indices: Vec::new(), symbols: Vec::new() });
    }
    let missing: Vec<usize> = (0..k).filter(|&i| sources[i].is_none()).collect();
    let e = missing.len();

    // (coefficients of what is missing | identity), reduced: the right part is the transform
    let mut system = Matrix { width: e + m, cells: vec![0; (e + m) * m] };
    for (j, cells) in system.cells.chunks_exact_mut(e + m).enumerate() {
        for (cell, &i) in cells.iter_mut().zip(&missing) {
            *cell = coefficients[j * k + i];
        }
        cells[e + j] = 1;
    }
    let pivots = system.reduce(e);
    let solved = |&row: &usize| system.row(row)[..e].iter().filter(|&&cell| cell != 0).count() == 1;
    let mut rows: Vec<usize> = (0..pivots.len()).filter(solved).collect();
    let indices: Vec<usize> = rows.iter().map(|&row| missing[pivots[row]]).collect();
    rows.extend(pivots.len()..m); // rows that must come out as zero
    if rows.is_empty() {
        return Ok(Rebuilt { indices, symbols: Vec::new() });
    }

    // what is missing = transform x repairs + (transform x coefficients) x what is known
    let mut transform = Vec::with_capacity(rows.len() * m);
    rows.iter().for_each(|&row| transform.extend_from_slice(&system.row(row)[e..]));
    let all: Vec<&[u8]> = coefficients.chunks_exact(k).collect();
    let mut folded = vec![0; rows.len() * k];
    product(kernel, &transform, &all, k, &mut folded)?;
    let mut factors = Vec::with_capacity(rows.len() * (m + k - e));
    for (transform, folded) in transform.chunks_exact(m).zip(folded.chunks_exact(k)) {
        factors.extend_from_slice(transform);
        factors
            .extend(folded.iter().zip(sources).filter(|(_, source)| source.is_some()).map(|(&cell, _)| cell));
    }
    let mut stacked = Vec::with_capacity(m + k - e);
    stacked.extend(repairs.iter().map(|&(_, symbol)| symbol));
    stacked.extend(sources.iter().flatten());
    let mut symbols = vec![0; rows.len() * width];
    product(kernel, &factors, &stacked, width, &mut symbols)?;
    if symbols[indices.len() * width..].iter().any(|&byte| byte != 0) {
        return Err(Error::Contradiction(
            "surplus repairs do not agree with the unit's other symbols".into(),
        ));
    }
    symbols.truncate(indices.len() * width);
    Ok(Rebuilt { indices, symbols })
}
