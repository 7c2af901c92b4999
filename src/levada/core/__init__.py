"""Errors, reasons, records, protocols, clock and settings, shared by every part."""
