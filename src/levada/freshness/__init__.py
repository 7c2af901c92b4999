"""WHEN do we come back to this page?

Pure: what was seen in, seconds until the next visit out. `LearnedRevisit` is ours; `RULES` holds the paper's rule
and what others use, each a `Rule` that `RuleRevisit` turns into a policy.
"""

from levada.freshness.beliefs import PageBeliefs
from levada.freshness.by_rule import RuleRevisit
from levada.freshness.learned import LearnedRevisit
from levada.freshness.rule import Rule
from levada.freshness.rules import RULES
from levada.freshness.worth import Scale

__all__ = ["RULES", "LearnedRevisit", "PageBeliefs", "Rule", "RuleRevisit", "Scale"]
