"""HOW MANY workers does each stage need right now?"""
