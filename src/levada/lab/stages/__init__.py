"""Stages laboratory: a simulator of queues and workers, and the tables of the report."""
