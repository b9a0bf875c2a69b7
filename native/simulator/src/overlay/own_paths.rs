//! Path policies that are not the scheme's: those of a file of the operator's own.

use agent::sending::Serving;

use crate::simulation::Simulation;

impl Simulation {
    /// Give each host's agent the path policies that `make` returns for its number, before anything runs.
    ///
    /// # Errors
    /// The first of `make`.
    pub fn set_path_policies<E>(&mut self, mut make: impl FnMut(u32) -> Result<Serving, E>) -> Result<(), E> {
        let Some(overlay) = &mut self.overlay else { return Ok(()) };
        for (number, host) in overlay.hosts.iter_mut().enumerate() {
            host.set_path_policies(make(number as u32)?);
        }
        Ok(())
    }
}
