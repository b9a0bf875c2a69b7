"""CAPTON's messages and what the kernel says of sockets; `native/agent/src/admission/` decides."""
