"""The Open vSwitch database's protocol (RFC 7047), and what the controller and a port's writer say by it."""
