"""Adapters to message brokers, stream processors, autoscalers and tracing."""
