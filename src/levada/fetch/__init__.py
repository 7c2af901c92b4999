"""Fetching: `CurlFetcher` on the running event loop, with an address guard where it dials."""

from __future__ import annotations

from levada.fetch.contained import ContainedFetcher
from levada.fetch.credentials import CredentialFetcher
from levada.fetch.curl import CurlFetcher
from levada.fetch.transfer import FetchLimits

__all__ = ["ContainedFetcher", "CredentialFetcher", "CurlFetcher", "FetchLimits"]
