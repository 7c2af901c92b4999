"""HOW is a huge table read by an unknown number of instances?"""
