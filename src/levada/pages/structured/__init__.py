"""Structured data of a page: JSON-LD, microdata, RDFa, OpenGraph, Twitter cards, Dublin Core.

All of it becomes items with the names of schema.org, within limits of bytes, items and depth. What cannot be read is
left out with a note; it is never an error of the page. A page without such data costs a search of its bytes.
"""
