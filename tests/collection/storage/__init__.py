"""Upgrades, backups and moves of whole collections."""
