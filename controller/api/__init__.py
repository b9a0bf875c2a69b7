"""The controller's REST API, version 1 (docs/api.md)."""
