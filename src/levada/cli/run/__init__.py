"""Commands that run until they are stopped: crawl, serve, control, work."""
