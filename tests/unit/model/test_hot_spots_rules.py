"""Files of rules, and what is wrong with them."""

from __future__ import annotations

import pytest

from dyno.analysis.hot_spots import built_in
from dyno.model.base import UserError
from dyno.model.hot_spots import Rule, parse_rules


def test_a_file_of_rules_is_read_in_its_order() -> None:
    text = "[[rule]]\ngroup = 'a'\nsymbol = '^x$'\n[[rule]]\ngroup = 'b'\nmodule = 'libz'\ncaller = 'main'\n"
    assert parse_rules(text, "mine.toml") == (
        Rule(group="a", symbol="^x$"),
        Rule(group="b", module="libz", caller="main"),
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[rule]", "mine.toml: not TOML"),
        ("", "mine.toml: rules of hot spots are tables [[rule]]"),
        ("[[rules]]\ngroup = 'a'", "mine.toml: rules of hot spots are tables [[rule]], not rules"),
        ("[[rule]]\ngroup = 'a'", "mine.toml: rule 1: Value error, a rule has a symbol or a module"),
        ("[[rule]]\ngroup = 'a'\nsymbol = '('", "mine.toml: rule 1, symbol: Value error, '(' is no regular expression"),
        ("[[rule]]\ngroup = 'a'\nsymbols = 'x'", "mine.toml: rule 1, symbols: Extra inputs"),
        ("[[rule]]\nsymbol = 'x'", "mine.toml: rule 1, group: Field required"),
    ],
)
def test_a_mistake_names_the_file_and_the_rule(text: str, said: str) -> None:
    with pytest.raises(UserError) as error:
        parse_rules(text, "mine.toml")
    assert str(error.value).startswith(said)


def test_the_rules_that_dyno_brings_can_be_read() -> None:
    groups = {rule.group for rule in built_in()}
    assert {
        "system calls", "copy", "locking", "memory management", "file system", "block", "network", "scheduling", "log",
        "B-tree", "JIT compilation",
    } <= groups  # fmt: skip
