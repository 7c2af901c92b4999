"""The crawl engine: one scheduler over two transports, in process and RabbitMQ."""
