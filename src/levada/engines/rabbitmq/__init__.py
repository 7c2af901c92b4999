"""RabbitMQ: connections, jobs, queue statistics and grouping."""
