"""Real servers for tests: private, on free loopback ports, in a temporary folder, one per run of the tests.

One file per server, with a class `Server` (see `tests.servers.private`), a fixture in `fixtures.py`, and a line in
`install.sh`. A test module that needs one says `pytest_plugins = ["tests.servers.fixtures"]`. The processes of a
parallel run share one server: a keeper starts it, and ends it when nobody holds on to it any more.
"""
