//! Numbers of leaves by name: one table for the process, so that routes and reports agree on them.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use agent::LeafId;
use pyo3::exceptions::PyValueError;
use pyo3::PyResult;

#[derive(Default)]
struct Leaves {
    ids: HashMap<String, LeafId>,
    names: Vec<String>,
}

static LEAVES: LazyLock<Mutex<Leaves>> = LazyLock::new(Mutex::default);

fn leaves() -> MutexGuard<'static, Leaves> {
    LEAVES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the number of a leaf, given to it when it is named first. ValueError: there are 65536 already.
pub fn leaf_id(name: &str) -> PyResult<LeafId> {
    let mut leaves = leaves();
    if let Some(&known) = leaves.ids.get(name) {
        return Ok(known);
    }
    let number = u16::try_from(leaves.names.len()).map_err(|_| {
        PyValueError::new_err(format!(
            "leaf {name}: this process knows {} leaves, no more fit",
            leaves.names.len()
        ))
    })?;
    leaves.names.push(name.to_owned());
    leaves.ids.insert(name.to_owned(), LeafId(number));
    Ok(LeafId(number))
}

/// Returns the number of a leaf that has one. What agents of other hosts name gets none: the table keeps a name for good.
pub fn known_leaf(name: &str) -> Option<LeafId> {
    leaves().ids.get(name).copied()
}

/// Returns the name of a leaf.
pub fn leaf_name(leaf: LeafId) -> String {
    leaves().names[usize::from(leaf.0)].clone()
}
