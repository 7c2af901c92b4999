"""What every test can rely on."""

from __future__ import annotations

import os
import signal
import tempfile

import pytest
from hypothesis import settings

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell that starts the tests in the background lets them ignore Ctrl-C, and what they start inherits that.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No settings and no named collections of the developer are met, nor in the processes that the tests start.
os.environ["XDG_CONFIG_HOME"] = os.environ["XDG_DATA_HOME"] = os.path.join(tempfile.gettempdir(), "levada-no-user")
os.environ.pop("LEVADA_DATA", None)

pytest_plugins = ["tests.servers.fixtures"]

settings.register_profile("levada", deadline=None)  # no test asserts a duration, nor does Hypothesis for it
settings.load_profile("levada")

pytest.register_assert_rewrite("levada.testing")  # so that a failed law shows its values
