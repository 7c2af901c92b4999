"""Simulates stages of workers with queues between them, and reruns the report's tables."""
