"""A crawl by workers on several machines: messages, the transport of the scheduler, and the two kinds of workers."""
