"""The laboratory: reruns the tables of the sources, figure beside figure."""
