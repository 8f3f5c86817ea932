"""Tables: what the papers measure on besides speech, as rows of numbers with labels."""

from ppspeech.data.tables.adult import AdultRecords, load_adult, load_adult_raw
from ppspeech.data.tables.breast_cancer import load_breast_cancer
from ppspeech.data.tables.columns import Columns, read_columns
from ppspeech.data.tables.genki import load_genki
from ppspeech.data.tables.har import load_har
from ppspeech.data.tables.japanese_vowels import JapaneseVowels, load_japanese_vowels
from ppspeech.data.tables.own import read_table
from ppspeech.data.tables.predicate import Predicate, parse_predicate
from ppspeech.data.tables.table import Table

__all__ = [
    "AdultRecords",
    "Columns",
    "JapaneseVowels",
    "Predicate",
    "Table",
    "load_adult",
    "load_adult_raw",
    "load_breast_cancer",
    "load_genki",
    "load_har",
    "load_japanese_vowels",
    "parse_predicate",
    "read_columns",
    "read_table",
]
