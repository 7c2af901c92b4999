"""Migrations: from each older format of the store to the present one."""
