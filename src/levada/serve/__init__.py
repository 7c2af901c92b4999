"""HTTP API, dashboard, change feed and metrics."""
