"""Checks of the machine, the installation, the servers and the collection."""
