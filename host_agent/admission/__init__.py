"""The host's side of CAPTON: large flows ask the controller, and are held, paced and stopped as it decides."""
