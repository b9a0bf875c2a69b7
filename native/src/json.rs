//! JSON for Python: read while the interpreter is not held, and built in pieces, between which other threads run.

use std::collections::HashMap;
use std::time::Duration;

use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use pyo3::IntoPyObjectExt;

use ::json::{self as json, Error, Value};

create_exception!(
    capstan_native,
    JsonError,
    PyValueError,
    "What was given is not JSON, or nested too deeply."
);
create_exception!(capstan_native, LongTextError, PyValueError, "JSON has a text that is too long.");

/// What is built at a time, in values, and in texts of so many bytes as take as long: some 0.2 ms.
const AT_A_TIME: usize = 2048;
const BYTES_OF_A_VALUE: usize = 256;
const MOST_RESERVED: usize = 1 << 26;
const MOST_NAMES: usize = 4096;

/// Builds Python's objects; names of members, which come again and again, are made once.
struct Builder {
    names: HashMap<String, Py<PyString>>,
    weight: usize,
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
        self.weight += 1;
        if let Value::Text(text) = &value {
            self.weight += text.len() / BYTES_OF_A_VALUE;
        }
        if self.weight >= AT_A_TIME {
            self.weight = 0;
            // A thread that waits has the interpreter now. Without the sleep it would be taken again before that
            // thread has woken, which would begin its wait of a switch interval anew.
            py.detach(|| std::thread::sleep(Duration::from_micros(1)));
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

/// Bytes of a body, collected in pieces. They are here, and not Python's, so that giving them back holds up no thread.
#[pyclass]
struct JsonContent(Vec<u8>);

#[pymethods]
impl JsonContent {
    #[new]
    fn new(expected_bytes: usize) -> Self {
        JsonContent(Vec::with_capacity(expected_bytes.min(MOST_RESERVED)))
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn add(&mut self, piece: &[u8]) {
        self.0.extend_from_slice(piece);
    }

    fn most_values(&self, py: Python<'_>) -> usize {
        py.detach(|| json::most_values(&self.0))
    }

    fn take<'py>(&mut self, py: Python<'py>, most_text_bytes: usize) -> PyResult<Bound<'py, PyAny>> {
        let content = std::mem::take(&mut self.0);
        let value = py.detach(move || json::read(&content, most_text_bytes)).map_err(|error| {
            let text = error.to_string();
            match error {
                Error::TooLongText => LongTextError::new_err(text),
                Error::NotJson(_) | Error::TooDeep => JsonError::new_err(text),
            }
        })?;
        Builder { names: HashMap::new(), weight: 0 }.build(py, value)
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("JsonError", module.py().get_type::<JsonError>())?;
    module.add("LongTextError", module.py().get_type::<LongTextError>())?;
    module.add_class::<JsonContent>()
}
