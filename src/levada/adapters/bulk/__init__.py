"""Tables, task books and maps that a load can use; one engine per file."""
