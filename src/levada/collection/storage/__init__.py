"""Looking after a collection: upgrades, backups, and moves to another place."""
