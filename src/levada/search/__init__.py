"""Search: query language, ranking, snippets, and the indexes behind them."""
