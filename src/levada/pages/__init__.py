"""Page reading: bytes in, facts out, without I/O."""
