//! JSON for Python: read while the interpreter is not held, and built in pieces, between which other threads run.

use std::collections::HashMap;

use pyo3::buffer::PyBuffer;
use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use pyo3::IntoPyObjectExt;

use ::json::{Error, Value};

create_exception!(
    capstan_native,
    JsonError,
    PyValueError,
    "What was given is not JSON, or nested too deeply."
);
create_exception!(capstan_native, LongTextError, PyValueError, "JSON has a text that is too long.");

/// Values that are built at a time: some 50 us.
const AT_A_TIME: usize = 512;
const MOST_NAMES: usize = 4096;

/// Builds Python's objects; names of members, which come again and again, are made once.
struct Builder {
    names: HashMap<String, Py<PyString>>,
    built: usize,
}

impl Builder {
    fn name<'py>(&mut self, py: Python<'py>, name: String) -> Bound<'py, PyString> {
        if let Some(known) = self.names.get(&name) {
            return known.bind(py).clone();
        }
        let made = PyString::new(py, &name);
        if self.names.len() < MOST_NAMES {
            self.names.insert(name, made.clone().unbind());
        }
        made
    }

    fn build<'py>(&mut self, py: Python<'py>, value: Value) -> PyResult<Bound<'py, PyAny>> {
        self.built += 1;
        if self.built % AT_A_TIME == 0 {
            py.detach(|| {}); // a thread that waits for the interpreter has it now
        }
        match value {
            Value::Null => Ok(py.None().into_bound(py)),
            Value::Bool(value) => value.into_bound_py_any(py),
            Value::Negative(value) => value.into_bound_py_any(py),
            Value::Natural(value) => value.into_bound_py_any(py),
            Value::Float(value) => value.into_bound_py_any(py),
            Value::Text(text) => Ok(PyString::new(py, &text).into_any()),
            Value::List(items) => {
                let list = PyList::empty(py);
                for item in items {
                    list.append(self.build(py, item)?)?;
                }
                Ok(list.into_any())
            }
            Value::Object(members) => {
                let object = PyDict::new(py);
                for (name, member) in members {
                    let member = self.build(py, member)?;
                    object.set_item(self.name(py, name), member)?;
                }
                Ok(object.into_any())
            }
        }
    }
}

/// The bytes of an object with a buffer. Its owner keeps other threads from writing them.
struct Content(PyBuffer<u8>);

impl Content {
    fn of(content: &Bound<'_, PyAny>) -> PyResult<Content> {
        let buffer = PyBuffer::<u8>::get(content)?;
        if !buffer.is_c_contiguous() {
            return Err(PyValueError::new_err("content must be contiguous"));
        }
        Ok(Content(buffer))
    }

    fn bytes(&self) -> &[u8] {
        if self.0.len_bytes() == 0 {
            return &[]; // the address of an empty buffer may be null
        }
        // SAFETY: the buffer is contiguous, of bytes, and is held as long as `self`.
        unsafe { std::slice::from_raw_parts(self.0.buf_ptr().cast(), self.0.len_bytes()) }
    }
}

#[pyfunction]
fn most_json_values(py: Python<'_>, content: &Bound<'_, PyAny>) -> PyResult<usize> {
    let content = Content::of(content)?;
    Ok(py.detach(|| ::json::most_values(content.bytes())))
}

#[pyfunction]
fn read_json<'py>(
    py: Python<'py>,
    content: &Bound<'py, PyAny>,
    most_text_bytes: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let content = Content::of(content)?;
    let value = py.detach(|| ::json::read(content.bytes(), most_text_bytes)).map_err(|error| {
        let text = error.to_string();
        match error {
            Error::TooLongText => LongTextError::new_err(text),
            Error::NotJson(_) | Error::TooDeep => JsonError::new_err(text),
        }
    })?;
    Builder { names: HashMap::new(), built: 0 }.build(py, value)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("JsonError", module.py().get_type::<JsonError>())?;
    module.add("LongTextError", module.py().get_type::<LongTextError>())?;
    module.add_function(wrap_pyfunction!(most_json_values, module)?)?;
    module.add_function(wrap_pyfunction!(read_json, module)?)
}
