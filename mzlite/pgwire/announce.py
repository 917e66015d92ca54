"""The one line a server prints on standard output once it accepts connections: `mzlite ready: URL`."""

READY = "ready: "
