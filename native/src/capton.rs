//! CAPTON's schedulers for Python. They are asked tens of thousands of times a second and answer in microseconds, so
//! the interpreter is held throughout.

use std::sync::{Mutex, MutexGuard, PoisonError};

use capton::fabric::Fabric;
use capton::plain::Plain;
use capton::scheduler::Scheduler;
use capton::{Decision, Error, Parameters};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

fn raised(error: Error) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Locks the scheduler: a thread waits while another one is being answered; after a panic the decisions may be wrong,
/// not unsafe.
fn held<T>(scheduler: &Mutex<T>) -> MutexGuard<'_, T> {
    scheduler.lock().unwrap_or_else(PoisonError::into_inner)
}

fn fabric_of(groups: Vec<Vec<u32>>, capacities: Vec<i64>) -> PyResult<Fabric> {
    Fabric::new(groups, capacities).map_err(raised)
}

fn parameters_of(least_share_ppm: i64, ageing: i64, finish_timeout_ns: i64) -> PyResult<Parameters> {
    if !(1..=1_000_000).contains(&least_share_ppm) || ageing < 0 || finish_timeout_ns < 0 {
        return Err(PyValueError::new_err(format!(
            "least share {least_share_ppm}e-6 (1..1000000), ageing {ageing} B/s and time-out {finish_timeout_ns} ns \
             (0 or more) do not all fit"
        )));
    }
    let finish_timeout = i128::from(finish_timeout_ns);
    Ok(Parameters { least_share: least_share_ppm, ageing, finish_timeout })
}

macro_rules! scheduler {
    ($name:ident, $kind:ty, $($extra:tt)*) => {
        #[pyclass]
        pub struct $name(Mutex<$kind>);

        #[pymethods]
        impl $name {
            #[new]
            fn new(
                groups: Vec<Vec<u32>>,
                capacities: Vec<i64>,
                least_share_ppm: i64,
                ageing: i64,
                finish_timeout_ns: i64,
            ) -> PyResult<Self> {
                let parameters = parameters_of(least_share_ppm, ageing, finish_timeout_ns)?;
                Ok($name(Mutex::new(<$kind>::new(fabric_of(groups, capacities)?, parameters))))
            }

            #[pyo3(signature = (flow, source, destination, size, now_ns, asked_ns = i64::MAX))]
            fn request(
                &self,
                flow: u64,
                source: usize,
                destination: usize,
                size: u64,
                now_ns: i64,
                asked_ns: i64,
            ) -> PyResult<Vec<Decision>> {
                let (now, requested) = (now_ns.into(), asked_ns.into());
                held(&self.0).request(flow, source, destination, size, now, requested).map_err(raised)
            }

            fn finished(&self, flow: u64, now_ns: i64) -> Vec<Decision> {
                held(&self.0).finished(flow, now_ns.into())
            }

            fn expire(&self, now_ns: i64) -> Vec<Decision> {
                held(&self.0).expire(now_ns.into())
            }

            fn capacity(&self, link: usize, rate: i64, now_ns: i64) -> PyResult<Vec<Decision>> {
                held(&self.0).capacity(link, rate, now_ns.into()).map_err(raised)
            }

            fn next_event(&self) -> Option<i64> {
                held(&self.0).next_event().map(|time| time.try_into().unwrap_or(i64::MAX))
            }

            fn __len__(&self) -> usize {
                held(&self.0).len()
            }

            $($extra)*
        }
    };
}

scheduler!(CaptonPlain, Plain,);
scheduler! {
    CaptonScheduler, Scheduler,
    fn standing(&self, now_ns: i64) -> Vec<(u64, usize, usize, u64, i64)> {
        let flows = held(&self.0).standing(now_ns.into()).into_iter();
        flows.map(|flow| (flow.id, flow.source, flow.destination, flow.remaining_bytes, flow.rate)).collect()
    }

    fn __contains__(&self, flow: u64) -> bool {
        held(&self.0).contains(flow)
    }

    fn usage(&self) -> Vec<(i64, i64)> {
        held(&self.0).usage()
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<CaptonScheduler>()?;
    module.add_class::<CaptonPlain>()
}
