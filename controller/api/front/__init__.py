"""The API's HTTP server: a process of its own, which speaks with clients and has the controller make the answers.

Serving connections takes an interpreter of its own as soon as a class of fifty has the page open: in one process with
the control plane each would wait for the other at every system call. `process` starts it from the controller,
``python -m controller.api.front`` (`__main__`, `server`) is the process: `connection` speaks HTTP with a client,
`coalescing` queues requests, `relay` passes them on and responses back. `backend` is the controller's side of that,
`frames` what the two exchange.
"""
