"""Rendering of pages that need JavaScript: a caged Chromium in a child process (extra `levada[browser]`)."""

from __future__ import annotations

from levada.browser.fetcher import Rendering, RenderingFetcher
from levada.browser.messages import BrowserSetup

__all__ = ["BrowserSetup", "Rendering", "RenderingFetcher"]
