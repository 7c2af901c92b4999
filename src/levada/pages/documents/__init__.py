"""Documents that are no web pages: PDF, office files, e-books, tables, JSON and XML as text, title, dates and links.

Each reader is a `PageReader`. It runs in the parser's child and decides nothing by the clock: the same bytes give the
same text wherever and whenever they are read, or every visit would find a change.
"""
