"""Sources: tables that a load can read, one engine per module."""
