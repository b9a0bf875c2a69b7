//! Values by flow, in the order in which they came.

use std::collections::{BTreeMap, HashMap};

use datapath::inner::FlowKey;

#[derive(Clone, Debug)]
pub struct InOrder<V> {
    values: HashMap<FlowKey, (u64, V)>,
    order: BTreeMap<u64, FlowKey>,
    next: u64,
}

impl<V> Default for InOrder<V> {
    fn default() -> InOrder<V> {
        InOrder { values: HashMap::new(), order: BTreeMap::new(), next: 0 }
    }
}

impl<V> InOrder<V> {
    pub fn len(&self) -> usize {
        self.values.len()
    }

    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    pub fn contains(&self, key: &FlowKey) -> bool {
        self.values.contains_key(key)
    }

    pub fn get(&self, key: &FlowKey) -> Option<&V> {
        self.values.get(key).map(|(_, value)| value)
    }

    pub fn get_mut(&mut self, key: &FlowKey) -> Option<&mut V> {
        self.values.get_mut(key).map(|(_, value)| value)
    }

    /// Adds a value as the newest, in place of an older one of its flow.
    pub fn put(&mut self, key: FlowKey, value: V) {
        self.remove(&key);
        self.values.insert(key, (self.next, value));
        self.order.insert(self.next, key);
        self.next += 1;
    }

    pub fn remove(&mut self, key: &FlowKey) -> Option<V> {
        let (place, value) = self.values.remove(key)?;
        self.order.remove(&place);
        Some(value)
    }

    /// Returns the flow that came first.
    pub fn oldest(&self) -> Option<FlowKey> {
        self.order.values().next().copied()
    }

    /// Returns the flows whose values are `wanted`.
    pub fn keys_where(&self, wanted: impl Fn(&V) -> bool) -> Vec<FlowKey> {
        let keys = self.order.values().copied();
        keys.filter(|key| self.get(key).is_some_and(&wanted)).collect()
    }
}
