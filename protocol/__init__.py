"""All that the controller and the host agents share: wire formats and documents, nothing that decides."""
