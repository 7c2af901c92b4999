"""Which engine stands behind each port? The one place where the flow meets the adapters."""
