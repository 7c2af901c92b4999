"""How do stored pages leave the house? One file per format; each streams, whatever the size."""
