"""`levada simulate`: stages of workers under a controller."""
