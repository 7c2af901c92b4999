"""The tools for language models (MCP)."""
