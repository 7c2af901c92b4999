"""Which reason does curl's error stand for?"""

from __future__ import annotations

import pycurl

from levada.reasons import Reason

__all__ = ["reason_of"]

_TOO_LARGE = 100  # CURLE_TOO_LARGE: a head or line beyond curl's own bounds; pycurl has no name for it
_REASONS = {
    pycurl.E_UNSUPPORTED_PROTOCOL: Reason.PROTOCOL,  # also an answer that is not HTTP/1 or later
    pycurl.E_URL_MALFORMAT: Reason.BAD_URL,
    pycurl.E_COULDNT_RESOLVE_HOST: Reason.DNS,
    pycurl.E_COULDNT_CONNECT: Reason.CONNECT,
    pycurl.E_SSL_CONNECT_ERROR: Reason.TLS,
    pycurl.E_PEER_FAILED_VERIFICATION: Reason.TLS,
    pycurl.E_SSL_CACERT_BADFILE: Reason.TLS,
    pycurl.E_SSL_CERTPROBLEM: Reason.TLS,
    pycurl.E_SSL_CIPHER: Reason.TLS,
    pycurl.E_SSL_ISSUER_ERROR: Reason.TLS,
    pycurl.E_SSL_INVALIDCERTSTATUS: Reason.TLS,
    pycurl.E_SSL_CRL_BADFILE: Reason.TLS,
    pycurl.E_USE_SSL_FAILED: Reason.TLS,
    _TOO_LARGE: Reason.HEADER_BYTES,
}


def reason_of(code: int, *, name_found: bool, connected: bool, out_of_time: bool) -> Reason:
    """The reason of a failed exchange; a time-out is told apart by how far the exchange had come."""
    if code != pycurl.E_OPERATION_TIMEDOUT:
        return _REASONS.get(code, Reason.PROTOCOL)
    if connected:
        return Reason.SECONDS if out_of_time else Reason.MIN_RATE
    return Reason.CONNECT if name_found else Reason.DNS
