"""The web page and the HTTP API: what Levada knows and decides, for a person and for a program."""
