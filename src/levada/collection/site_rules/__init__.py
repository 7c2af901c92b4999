"""Rules of sites in a collection: changing them, and what they keep out."""
