"""Whose certificates do we believe? The machine's own store, wherever this machine keeps it."""

from __future__ import annotations

import os
import ssl
from pathlib import Path

__all__ = ["trusted_certificates"]

# A packaged libcurl brings its own OpenSSL, which looks where its builder's machine kept the store.
_USUAL_PLACES = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Ubuntu, Arch
    "/etc/pki/tls/certs/ca-bundle.crt",  # Fedora, RHEL
    "/etc/ssl/ca-bundle.pem",  # SUSE
    "/etc/ssl/cert.pem",  # Alpine, macOS
    "/opt/homebrew/etc/ca-certificates/cert.pem",
)


def trusted_certificates() -> str | None:
    """The file of trusted authorities: SSL_CERT_FILE, Python's own, or a usual place; None if there is none."""
    candidates = (os.environ.get("SSL_CERT_FILE"), ssl.get_default_verify_paths().cafile, *_USUAL_PLACES)
    return next((path for path in candidates if path and Path(path).is_file()), None)
