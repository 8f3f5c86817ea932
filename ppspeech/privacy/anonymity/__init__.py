"""What is called anonymization, without a guarantee: k-anonymity, swapping, hiding of rules.

Each is a mechanism whose guarantee is of the kind `none`, so that an account that holds one has no epsilon. They are
here to be measured and attacked beside differential privacy.
"""

from ppspeech.privacy.anonymity.hierarchy import Hierarchy
from ppspeech.privacy.anonymity.k_anonymity import Generalized, KAnonymity
from ppspeech.privacy.anonymity.measures import Told, measure, smallest_class
from ppspeech.privacy.anonymity.records import ANY, Records, ends, meant, number, shuffled
from ppspeech.privacy.anonymity.rules import Baskets, Hidden, Rule, RuleHiding, rules
from ppspeech.privacy.anonymity.swapping import Swapping

__all__ = [
    "ANY",
    "Baskets",
    "Generalized",
    "Hidden",
    "Hierarchy",
    "KAnonymity",
    "Records",
    "Rule",
    "RuleHiding",
    "Swapping",
    "Told",
    "ends",
    "meant",
    "measure",
    "number",
    "rules",
    "shuffled",
    "smallest_class",
]
