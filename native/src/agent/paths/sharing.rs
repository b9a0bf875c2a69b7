//! What the agents of one leaf have on its paths, shared between them, for the controller.

use std::collections::BTreeMap;

use agent::paths::{on_paths_of_the_others, OnPaths};
use pyo3::prelude::*;

/// By leaf and stamp. Leaves are texts: what agents name is not kept in this process's table of leaves.
type Delays = BTreeMap<String, BTreeMap<u16, f64>>;
type PathLoad = (BTreeMap<u16, i64>, Delays);

#[pyfunction]
fn path_loads_of_others(loads: Vec<PathLoad>) -> Vec<PathLoad> {
    let loads: Vec<OnPaths<(String, u16)>> = loads
        .into_iter()
        .map(|(short_flows, delays)| OnPaths { short_flows, delays_s: by_path(delays) })
        .collect();
    on_paths_of_the_others(&loads)
        .into_iter()
        .map(|others| (others.short_flows, by_leaf(others.delays_s)))
        .collect()
}

fn by_path(delays: Delays) -> BTreeMap<(String, u16), f64> {
    let of_leaf = |(leaf, delays): (String, BTreeMap<u16, f64>)| {
        delays.into_iter().map(move |(stamp, delay_s)| ((leaf.clone(), stamp), delay_s))
    };
    delays.into_iter().flat_map(of_leaf).collect()
}

fn by_leaf(delays: BTreeMap<(String, u16), f64>) -> Delays {
    let mut leaves = Delays::new();
    for ((leaf, stamp), delay_s) in delays {
        leaves.entry(leaf).or_default().insert(stamp, delay_s);
    }
    leaves
}

/// Add all of this to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(path_loads_of_others, module)?)
}
