"""The API's HTTP server: a process of its own, which speaks with clients and has the controller make the answers.

Serving connections takes an interpreter of its own as soon as a class of fifty has the page open: in one process with
the control plane each would wait for the other at every system call. Here `process` starts it from the controller,
``python -m controller.api.front`` (`__main__`) is the process, `forwarder` its application, `backend` the controller's
side of that, `wire` what they say to each other; `collapsing` and `hand_over` are what it does better than Waitress.
"""
