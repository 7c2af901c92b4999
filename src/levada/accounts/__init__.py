"""Who may do what on a server: users, keys, their rights, and the log of who did what."""
