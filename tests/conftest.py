"""What every test can rely on."""

from __future__ import annotations

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell that starts the tests in the background lets them ignore Ctrl-C, and what they start inherits that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
