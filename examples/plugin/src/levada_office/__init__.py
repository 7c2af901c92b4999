"""Two plug-ins for Levada: a CSV exporter, and a revisit policy that rests outside office hours."""
