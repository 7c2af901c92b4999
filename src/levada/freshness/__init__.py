"""WHEN do we come back to this page?"""
