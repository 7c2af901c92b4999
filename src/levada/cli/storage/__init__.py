"""Commands that look after a collection: upgrade, backup, restore, move."""
