"""`levada lab`: reruns the tables of the sources."""
