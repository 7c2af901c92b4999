"""WHEN: the time of the next visit to a page.

Pure: visits in, seconds until the next visit out. `LearnedRevisit` is Levada's own policy. `RULES` names the rule of
the paper and those of other crawlers; `revisit_rule` makes one of them, and `RuleRevisit` turns it into a policy.

>>> rule = levada.freshness.revisit_rule("ema", first=3600.0, floor=300.0, ceiling=86_400.0)
>>> memory = [0.0] * rule.width
>>> rule.step(memory, rule.parameters, 0.0, 0)  # the first visit: come back after an hour
3600.0
"""

from levada.freshness.estimates import PageEstimates
from levada.freshness.learned import LearnedRevisit
from levada.freshness.rules import RULES, ContainedPolicy, Rule, RuleRevisit, revisit_rule
from levada.freshness.value import Scale

__all__ = [
    "RULES",
    "ContainedPolicy",
    "LearnedRevisit",
    "PageEstimates",
    "Rule",
    "RuleRevisit",
    "Scale",
    "revisit_rule",
]
