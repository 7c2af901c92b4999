"""Rules of sites: `[[site]]` tables of the settings, matched by host and path."""
