//! A policy document (`protocol.policy.Policy`) as the compiled decisions take it.

use agent::admission::{AdmissionPolicy, RequestTimes};
use agent::blocking::EstimatorKind;
use agent::host::HostPolicy;
use agent::paths::{BoxedPolicy, PathSettings, PlbSettings, RepsSettings, UnblockedSettings};
use agent::priority::{Feature, FlowTypes, PriorityPolicy, PriorityRule};
use agent::receiving::{feedback_after_s, Hold, ReceivePolicy};
use agent::sending::{EstimatorChoice, SendPolicy, Serving};
use agent::{Generator, TrafficClass};
use pyo3::prelude::*;

use crate::agent::coding::{unknown, PyCodingPolicy};

/// All that a policy document says, for the two halves of an agent.
pub struct Document {
    /// All but the paths.
    pub host: HostPolicy,
    /// Kinds of path policies by class; None: the one of the operator's own file.
    pub paths: [Option<PathSettings>; 4],
}

impl Document {
    /// Returns what a `protocol.policy.Policy` says. ValueError: a name that is not known.
    pub fn of(policy: &Bound<'_, PyAny>) -> PyResult<Document> {
        let packet_time_s: f64 = policy.getattr("packet_time_s")?.extract()?;
        let mut send = SendPolicy {
            short_limit_bytes: policy.getattr("short_limit_bytes")?.extract()?,
            prior_knowledge: policy.getattr("prior_knowledge")?.extract()?,
            priority: priorities(&policy.getattr("priority")?)?,
            ..SendPolicy::plain(packet_time_s)
        };
        let mut paths = [Some(PathSettings::FlowHash); 4];
        let mut holds = [Hold::For(0.0); 4];
        for (class, name) in
            [(TrafficClass::Short, "short"), (TrafficClass::Long, "long"), (TrafficClass::Control, "control")]
        {
            let of_class = policy.getattr(name)?;
            paths[class.index()] = path_settings(&of_class.getattr("path")?, packet_time_s)?;
            send.priority.of_class[class.index()] = of_class.getattr("priority")?.extract()?;
            let release = of_class.getattr("release")?;
            if !release.is_none() && class != TrafficClass::Control {
                holds[class.index()] = hold(&release)?;
            }
            let coding = of_class.getattr("coding")?;
            if !coding.is_none() && class != TrafficClass::Control {
                send.coding[class.index()] = Some(coding.extract::<PyCodingPolicy>()?.policy()?);
                let estimator = estimator(&coding)?;
                send.estimator.get_or_insert(estimator);
            }
        }
        let receive = ReceivePolicy::new(packet_time_s, holds);
        let admission = policy.getattr("admission")?;
        let admission = (!admission.is_none()).then(|| admission_policy(&admission)).transpose()?;
        Ok(Document { host: HostPolicy { send, receive, admission }, paths })
    }

    /// Makes the path policies: one for all classes that ask for the same. `own` makes the one of the operator's file.
    pub fn serving(
        &self,
        random: &mut Generator,
        mut own: impl FnMut() -> PyResult<BoxedPolicy>,
    ) -> PyResult<Serving> {
        let mut made: Vec<Option<PathSettings>> = Vec::new();
        let (mut policies, mut serves) = (Vec::new(), [0; 4]);
        for (place, settings) in serves.iter_mut().zip(self.paths) {
            let known = made.iter().position(|other| *other == settings);
            *place = known.unwrap_or(made.len());
            if known.is_none() {
                made.push(settings);
                policies.push(match settings {
                    Some(settings) => settings.policy(random.split()),
                    None => own()?,
                });
            }
        }
        Ok(Serving { policies, serves })
    }
}

/// Returns what a `protocol.policy.ReleasePolicy` says. ValueError: a rule that is not known.
fn hold(release: &Bound<'_, PyAny>) -> PyResult<Hold> {
    let timeout_s = release.getattr("timeout_s")?.extract()?;
    match release.getattr("rule")?.extract::<String>()?.as_str() {
        "timer" => Ok(Hold::For(timeout_s)),
        "paths" => Ok(Hold::ByPaths { silence_s: timeout_s }),
        other => unknown("release rule", other),
    }
}

/// Thresholds by the bytes of features.
pub type Values = Vec<(Vec<u8>, Vec<u64>)>;

/// Returns types of flows by the names of their features. ValueError: a name that is not known.
pub fn types_of(features: &[String], values: Values) -> PyResult<FlowTypes> {
    let feature = |name: &String| match name.as_str() {
        "source" => Ok(Feature::Source),
        "destination" => Ok(Feature::Destination),
        "source_port" => Ok(Feature::SourcePort),
        "destination_port" => Ok(Feature::DestinationPort),
        other => unknown("feature", other),
    };
    let features = features.iter().map(feature).collect::<PyResult<_>>()?;
    let of_value = values.into_iter().map(|(value, thresholds)| (value, thresholds.into())).collect();
    Ok(FlowTypes { features, of_value })
}

/// Returns what a `protocol.policy.PathSettings` asks for; None: the policy of the operator's own file. ValueError: a kind
/// that is not known.
pub fn path_settings(path: &Bound<'_, PyAny>, packet_time_s: f64) -> PyResult<Option<PathSettings>> {
    let number = |name: &str| path.getattr(name)?.extract::<f64>();
    let whole = |name: &str| path.getattr(name)?.extract::<u32>();
    let kind: String = path.getattr("kind")?.extract()?;
    Ok(Some(match kind.as_str() {
        "spray" => PathSettings::Spray,
        "flow-hash" => PathSettings::FlowHash,
        "label-hash" => PathSettings::LabelHash,
        "round-robin" => PathSettings::RoundRobin,
        "granted" => PathSettings::Granted,
        "flowcell" => PathSettings::Flowcell { bytes: path.getattr("flowcell_bytes")?.extract()? },
        "flowlet" => PathSettings::Flowlet { gap_s: number("gap_s")? },
        "tr" => PathSettings::Tr { packet_time_s },
        "reps" => PathSettings::Reps(RepsSettings {
            congested_s: number("congested_s")?,
            explore_packets: whole("explore_packets")?,
            freeze_s: number("freeze_s")?,
        }),
        "plb" => PathSettings::Plb(PlbSettings {
            congested_s: number("congested_s")?,
            congested_share: number("congested_share")?,
            rounds: whole("rounds")?,
            idle_rounds: whole("idle_rounds")?,
            suspend_s: number("suspend_s")?,
        }),
        "unblocked" => PathSettings::Unblocked(UnblockedSettings {
            congested_s: number("congested_s")?,
            avoid_s: number("avoid_s")?,
            feedback_after_s: feedback_after_s(packet_time_s),
        }),
        "file" => return Ok(None),
        other => return unknown("path policy", other),
    }))
}

fn admission_policy(admission: &Bound<'_, PyAny>) -> PyResult<AdmissionPolicy> {
    let seconds = |name: &str| admission.getattr(name)?.extract::<f64>();
    Ok(AdmissionPolicy {
        threshold_bytes: admission.getattr("threshold_bytes")?.extract()?,
        times: RequestTimes {
            retry_s: seconds("retry_s")?,
            refresh_s: seconds("refresh_s")?,
            fail_safe_s: seconds("fail_safe_s")?,
        },
        burst_s: seconds("burst_s")?,
    })
}

fn estimator(coding: &Bound<'_, PyAny>) -> PyResult<EstimatorChoice> {
    let name: String = coding.getattr("estimator")?.extract()?;
    let kind = match name.as_str() {
        "paths" => EstimatorKind::Paths,
        "rtt" => EstimatorKind::Rtt,
        "rtt-average" => EstimatorKind::RttAverage,
        "rtt-smoothed" => EstimatorKind::RttSmoothed,
        "loss-rate" => EstimatorKind::LossRate,
        "marks" => EstimatorKind::Marks,
        other => return unknown("estimator", other),
    };
    Ok(EstimatorChoice { kind, sampling_s: coding.getattr("sampling_s")?.extract()? })
}

fn priorities(priority: &Bound<'_, PyAny>) -> PyResult<PriorityPolicy> {
    let kind: String = priority.getattr("kind")?.extract()?;
    let thresholds: Vec<u64> = priority.getattr("thresholds_bytes")?.extract()?;
    Ok(PriorityPolicy {
        rule: match kind.as_str() {
            "class" => PriorityRule::Class,
            "size" => PriorityRule::Size,
            _ => PriorityRule::Sent,
        },
        of_class: [0; 4],
        thresholds: thresholds.into(),
        predicted: priority.getattr("predicted")?.extract()?,
    })
}
