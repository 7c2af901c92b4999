"""What is there to tell of a collection, a page, a change? Facts and sentences that commands and the API share."""
