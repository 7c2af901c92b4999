"""What is on a page? Pure: bytes in, facts out."""
