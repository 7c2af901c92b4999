"""WHO gets this record of a skewed stream?"""
