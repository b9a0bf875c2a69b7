//! Estimators of the blocking probability for Python: one class for each, of one base.

use ::agent::blocking::{
    self as estimators, AckShare, LossRate, Paths, Reference, Reported, Rtt, MAX_BLOCKING_PROBABILITY,
    MIN_SAMPLES, PRIOR,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3::PyClass;

#[pyclass(subclass)]
pub struct BlockingEstimator(Box<dyn estimators::BlockingEstimator>);

#[pymethods]
impl BlockingEstimator {
    /// Bound of the estimates that are ours.
    #[classattr]
    const MAX_BLOCKING_PROBABILITY: f64 = MAX_BLOCKING_PROBABILITY;

    /// pB while nothing is known yet.
    #[classattr]
    const PRIOR: f64 = PRIOR;

    #[getter]
    fn prior(&self) -> f64 {
        self.0.prior()
    }

    #[setter]
    fn set_prior(&mut self, prior: f64) {
        self.0.set_prior(prior);
    }

    #[getter]
    fn overdue_s(&self) -> f64 {
        self.0.overdue_s()
    }

    fn ack_rtt(&mut self, rtt_s: f64, now: f64) {
        self.0.ack_rtt(rtt_s, now);
    }

    fn path_delay(&mut self, stamp: i64, delay_us: u32, now: f64) {
        if let Ok(stamp) = stamp.try_into() {
            self.0.path_delay(stamp, delay_us, now);
        }
    }

    fn path_loss(&mut self, stamp: Option<i64>, now: f64) {
        self.0.path_loss(stamp.and_then(|stamp| stamp.try_into().ok()), now);
    }

    fn reported(&mut self, arrived: u64, overdue: u64, now: f64) {
        self.0.reported(Reported { arrived, overdue }, now);
    }

    fn blocking_probability(&mut self, now: f64) -> f64 {
        self.0.blocking_probability(now)
    }

    fn rtt_s(&self) -> f64 {
        self.0.rtt_s()
    }

    fn blocked_rtt_s(&self) -> f64 {
        self.0.blocked_rtt_s()
    }
}

fn with<C: PyClass<BaseType = BlockingEstimator>>(
    estimator: impl estimators::BlockingEstimator + 'static,
    class: C,
) -> PyClassInitializer<C> {
    PyClassInitializer::from(BlockingEstimator(Box::new(estimator))).add_subclass(class)
}

#[pyclass(extends = BlockingEstimator)]
pub struct PathsEstimator;

#[pymethods]
impl PathsEstimator {
    #[new]
    #[pyo3(signature = (packet_time_s, max_age_s=None))]
    fn new(packet_time_s: f64, max_age_s: Option<f64>) -> PyClassInitializer<Self> {
        with(Paths::new(packet_time_s, max_age_s), PathsEstimator)
    }

    fn paths<'py>(this: PyRef<'py, Self>, py: Python<'py>, now: f64) -> PyResult<Bound<'py, PyDict>> {
        let by_stamp = PyDict::new(py);
        for path in this.into_super().0.paths(now) {
            by_stamp.set_item(path.stamp, (path.excess_s, path.blocked))?;
        }
        Ok(by_stamp)
    }
}

#[pyclass(extends = BlockingEstimator)]
pub struct RttEstimator;

#[pymethods]
impl RttEstimator {
    #[classattr]
    const MIN_SAMPLES: u64 = MIN_SAMPLES;

    #[new]
    #[pyo3(signature = (packet_time_s, interval_s=None))]
    fn new(packet_time_s: f64, interval_s: Option<f64>) -> PyClassInitializer<Self> {
        with(Rtt::new(packet_time_s, interval_s), RttEstimator)
    }
}

#[pyclass(extends = BlockingEstimator)]
pub struct LossRateEstimator;

#[pymethods]
impl LossRateEstimator {
    #[classattr]
    const MIN_SAMPLES: u64 = MIN_SAMPLES;

    #[new]
    #[pyo3(signature = (packet_time_s, sampling_s=None))]
    fn new(packet_time_s: f64, sampling_s: Option<f64>) -> PyClassInitializer<Self> {
        with(LossRate::new(packet_time_s, sampling_s), LossRateEstimator)
    }
}

#[pyclass(extends = BlockingEstimator)]
pub struct AckShareEstimator;

#[pymethods]
impl AckShareEstimator {
    #[new]
    #[pyo3(signature = (packet_time_s, sampling_s=None, smoothed=false))]
    fn new(packet_time_s: f64, sampling_s: Option<f64>, smoothed: bool) -> PyClassInitializer<Self> {
        let reference = if smoothed { Reference::Smoothed } else { Reference::Average };
        let estimator = AckShare::new(reference, packet_time_s, sampling_s);
        with(estimator, AckShareEstimator)
    }
}

/// Add all of this to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<BlockingEstimator>()?;
    module.add_class::<PathsEstimator>()?;
    module.add_class::<RttEstimator>()?;
    module.add_class::<LossRateEstimator>()?;
    module.add_class::<AckShareEstimator>()
}
