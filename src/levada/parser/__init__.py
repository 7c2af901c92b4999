"""Parser children: untrusted pages are read in processes with limits of CPU and memory."""
