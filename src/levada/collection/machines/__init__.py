"""What processes of one collection on several machines need of each other: patience, and who owns which sites."""
