"""Which commands are there, and what does each say of itself in one line?

Written down here, so that the first page of help is shown without loading a single command. Each stands in the
module of its name; a test compares every line with what the command says itself.
"""

from __future__ import annotations

__all__ = ["CONTENTS"]

# What one collection needs, in the order in which it is met; then the parts alone, and how they were measured.
CONTENTS = {
    "A collection": {
        "demo": (
            "Crawls a small web that comes with Levada, offline: 23 sites that change at known rates, and a "
            "hostile one."
        ),
        "crawl": "Crawls from the URLs given, keeps every page, and comes back when it is worth it.",
        "serve": "Opens the dashboard and the API, beside a running crawl or alone.",
        "doctor": (
            "Checks this installation, the settings, their servers and the collection, and says what to do."
        ),
    },
    "Ask it": {
        "search": "Finds stored pages by their words, the best first.",
        "postings": "Lists in which pages a word stands and how often, as `site-url-count`.",
        "diff": "Shows what changed on a page, the last time or earlier.",
        "why": ("Says when a page is visited next, and why then; or, with --budget, what more fetches would gain."),
        "trends": "Shows the terms that pages gained lately, and more often than before.",
        "export": "Writes the stored pages, in one of four forms, whatever their number.",
    },
    "Several machines": {
        "control": (
            "Looks at queues of RabbitMQ, decides how many workers each stage should have, and starts and "
            "stops them as processes of this machine; or tells Kubernetes."
        ),
        "work": (
            "Fetches pages that `levada control --data` hands out, or stores what was fetched; any number of times."
        ),
        "warm": "Fills a map with what is known of each page, from the collection's own shards.",
        "load": "Reads a whole table with as many instances as there are, into a map that everyone reads.",
        "shard": (
            "Captures what a store is asked, and finds the key that splits its documents the way they are "
            "asked for."
        ),
    },
    "The parts alone": {
        "freshness": "When would a rule come back to a page?",
        "group": (
            "Runs one method on one stream, in virtual time: ten senders that decide alone, workers of 1.04 "
            "ms per record."
        ),
        "simulate": (
            "Simulates scanners that make jobs, orchestrators that prepare them and catalogs that finish "
            "them, or another chain, with a queue before each stage; or a `sweep` over settings; or says "
            "what `size` is enough."
        ),
        "lab": "Reruns the tables of the sources, and ours beside them.",
    },
}
