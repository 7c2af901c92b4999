"""The autoscaler, its worker pools, and the statistics that it decides by."""
