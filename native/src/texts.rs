//! Addresses as Python has them, each made once.

use std::collections::HashMap;
use std::net::Ipv4Addr;

use pyo3::prelude::*;
use pyo3::types::PyString;

const MOST_TEXTS: usize = 4096;

/// Texts of IPv4 addresses.
pub type Texts = HashMap<[u8; 4], Py<PyString>>;

/// Return the text of an address, out of `texts` if it is there.
pub fn text_of<'py>(py: Python<'py>, texts: &mut Texts, address: [u8; 4]) -> Bound<'py, PyString> {
    if let Some(text) = texts.get(&address) {
        return text.bind(py).clone();
    }
    let text = PyString::new(py, &Ipv4Addr::from(address).to_string());
    if texts.len() < MOST_TEXTS {
        texts.insert(address, text.clone().unbind());
    }
    text
}
