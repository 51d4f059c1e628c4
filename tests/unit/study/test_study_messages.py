"""What each mistake in a study file is answered with: line, key and remedy, word for word."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from study_example import KINDS, changed, written

import dyno.study
from dyno.study import StudyError, loader

# What is wrong -> (the lines of the example that are changed, what follows the file's name in the message)
CASES: dict[str, tuple[dict[int, str], str]] = {
    "an unknown key names the nearest one": (
        {13: "  mx: a"},
        (
            "13: workload.mx: unknown key; did you mean 'mix'? (keys: kind, mix, records, operations, durati"
            "on, threads, theta, name, tables, proportions)"
        ),
    ),
    "an unknown top-level key names the nearest one": (
        {11: "wrkload:"},
        (
            "11: wrkload: unknown key; did you mean 'workload'? (keys: study, question, factors, design, com"
            "pare, stages, host, system, workload, replicates, observe, intervene, faults, limits, order, pr"
            "epare, restore, seed and 3 more)"
        ),
    ),
    "an unknown key of a nested option is found": (
        {10: "    log: {sise: 1 MiB}"},
        "10: system.config.log.sise: unknown key; did you mean 'size'? (keys: size, level)",
    ),
    "an unknown key of the system's options": (
        {10: "    cash_size: 64 MiB"},
        (
            "10: system.config.cash_size: unknown key; did you mean 'cache_size'? (keys: journal_mode, cache"
            "_size, busy_timeout, exclusive, log, switch)"
        ),
    ),
    "an option of the system beside its kind is sent to config": (
        {8: "  journal_mode: ${journal}", 9: "", 10: ""},
        ("8: system.journal_mode: an option of the system stands under config; write it as system.config.journal_mode"),
    ),
    "a required key of the study is missing": ({2: ""}, "1: question: this required key is missing"),
    "a required option is missing": ({13: ""}, "11: workload.mix: this required key is missing"),
    "a kind is missing": ({7: ""}, "6: system.kind: this required key is missing"),
    "an unknown kind of system": (
        {7: "  kind: sqllite"},
        "7: system.kind: unknown kind 'sqllite'; did you mean 'sqlite'? (kinds: null, sqlite)",
    ),
    "an unknown kind of workload": ({12: "  kind: tpcc"}, "12: workload.kind: unknown kind 'tpcc' (kinds: null, ycsb)"),
    "a kind that is no text": ({12: "  kind: [ycsb]"}, "12: workload.kind: should be text, not a list"),
    "an unknown deployment says which are known": (
        {7: "  kind: sqlite\n  deployment: vm"},
        "8: system.deployment: unknown deployment 'vm' (deployments: native)",
    ),
    "a size beyond its bounds": (
        {10: "    log: {size: 2 TiB}"},
        "10: system.config.log.size: should be at most 1 TiB, not '2 TiB'",
    ),
    "a value outside its choices": (
        {10: "    log: {level: hgih}"},
        "10: system.config.log.level: should be one of low, high; not 'hgih'; did you mean 'high'?",
    ),
    "a level outside an option's choices is named where the level is": (
        {4: "  journal: [delete, wall]"},
        (
            "4: system.config.journal_mode: should be one of delete, wal, off; not 'wall'; did you mean 'wal"
            "'? (from '${journal}')"
        ),
    ),
    "a truth value for a choice of words says to quote it": (
        {10: "    switch: true"},
        ("10: system.config.switch: should be one of on, off, true; not true, a truth value; quote it as text: 'true'"),
    ),
    "a truth value where no such word exists": (
        {13: "  mix: false"},
        "13: workload.mix: should be one of a, b, c; not false, a truth value, which is not text",
    ),
    "a word for a truth value": (
        {10: "    exclusive: yes"},
        ("10: system.config.exclusive: should be true or false, not 'yes'; write true or false, without quotes"),
    ),
    "text for a number": (
        {14: "  threads: '${threads}'\n  records: many"},
        "15: workload.records: should be a whole number, not 'many'",
    ),
    "a quoted number": (
        {13: "  mix: a\n  records: '5'"},
        "14: workload.records: should be a whole number, not '5'; remove the quotes",
    ),
    "a number with a point for a whole number": (
        {13: "  mix: a\n  records: 1e3"},
        "14: workload.records: should be a whole number, not 1000.0; write 1000",
    ),
    "a number for text": ({13: "  mix: a\n  name: 5"}, "14: workload.name: should be text, not 5; quote it: '5'"),
    "a number out of bounds": (
        {5: "  threads: [1, 65]"},
        "5: workload.threads: should be at most 64, not 65 (from '${threads}')",
    ),
    "a share out of bounds is answered in per cent": (
        {15: "replicates: {confidence: 30%}"},
        "15: replicates.confidence: should be at least 50%, not '30%'",
    ),
    "a size without its unit": (
        {10: "    cache_size: 64"},
        (
            "10: system.config.cache_size: 64 has no unit: write it as 64 B or 64 MiB (units: B, kB, KB, MB, GB, TB, "
            "KiB, MiB, GiB, TiB)"
        ),
    ),
    "a size with an unknown unit": (
        {10: "    cache_size: 64 M"},
        (
            "10: system.config.cache_size: '64 M' has an unknown unit 'M' (units: B, kB, KB, MB, GB, TB, KiB"
            ", MiB, GiB, TiB)"
        ),
    ),
    "a duration without its unit": (
        {15: "limits: {stop: 5}"},
        "15: limits.stop: 5 has no unit: write it as 5 s or 5 ms (units: us, ms, s, min, h, d)",
    ),
    "a mapping for a value": (
        {10: "    cache_size: {a: 1}"},
        "10: system.config.cache_size: a size is a number with a unit, such as 8 GiB",
    ),
    "a value for a mapping": (
        {8: "  config: 5", 9: "", 10: ""},
        "8: system.config: should be a mapping of keys, not 5",
    ),
    "a section with nothing below": (
        {15: "limits:"},
        "15: limits: should be a mapping of keys, not null; write {} for an empty one",
    ),
    "a value for a list": ({13: "  mix: a\n  tables: x"}, "14: workload.tables: should be a list, not 'x'"),
    "a list item of the wrong type": (
        {13: "  mix: a\n  tables: [x, 5]"},
        "14: workload.tables[1]: should be text, not 5; quote it: '5'",
    ),
    "a validator of a section speaks for itself": (
        {15: "replicates: {min: 6, max: 5}"},
        "15: replicates: min (6) is above max (5)",
    ),
    "a validator of a kind speaks for itself": (
        {13: "  mix: a\n  operations: 5\n  duration: 1 s"},
        "12: workload: give operations or duration, not both",
    ),
    "a section that is no mapping": (
        {6: "system: sqlite", 7: "", 8: "", 9: "", 10: ""},
        "6: system: should be a mapping of keys, not 'sqlite'",
    ),
    "a bad name of a study": (
        {1: "study: SQLite journal"},
        "1: study: should be 1 to 64 lower-case letters, digits and hyphens, such as sqlite-journal",
    ),
    "an empty question": ({2: "question: ''"}, "2: question: is empty; ask in a sentence what the study is to answer"),
    "a question of two paragraphs": (
        {2: "question: 'a?\n\n\n  b?'"},
        "2: question: should be one paragraph; remove the empty line",
    ),
    "an unknown response": (
        {15: "replicates: {of: thruput}"},
        (
            "15: replicates.of: unknown response 'thruput'; did you mean 'throughput'? (responses, each also"
            " as read.latency_p99: throughput, latency_mean, latency_p50, latency_p90, latency_p95, latency_"
            "p99, latency_p999, latency_max, service_mean, service_p50, service_p90, service_p95 and 73 more)"
        ),
    ),
    "an unknown response of an operation": (
        {15: "replicates: {of: .throughput}"},
        (
            "15: replicates.of: unknown response '.throughput'; did you mean 'throughput'? (responses, each "
            "also as read.latency_p99: throughput, latency_mean, latency_p50, latency_p90, latency_p95, late"
            "ncy_p99, latency_p999, latency_max, service_mean, service_p50, service_p90, service_p95 and 73 more)"
        ),
    ),
    "compare names no factor": (
        {15: "compare: thread"},
        "15: compare: unknown factor 'thread'; did you mean 'threads'? (factors: journal, threads)",
    ),
    "a ratio without a comparison": (
        {15: "compare: null\nreplicates: {precision_of: ratio}"},
        (
            "16: replicates.precision_of: ratio needs a compared factor of at least two levels; name one wit"
            "h compare, or write mean"
        ),
    ),
    "a ratio of one level": (
        {4: "  journal: [wal]", 15: "replicates: {precision_of: ratio}"},
        (
            "15: replicates.precision_of: ratio needs a compared factor of at least two levels; name one wit"
            "h compare, or write mean"
        ),
    ),
    "a seed below zero": ({15: "seed: -1"}, "15: seed: should be at least 0, not -1"),
    "an unknown order": (
        {15: "order: random"},
        "15: order: should be one of randomised, fixed; not 'random'; did you mean 'randomised'?",
    ),
    "an unknown state of caches": (
        {15: "host: {caches: hot}"},
        "15: host.caches: should be one of warm, cold; not 'hot'",
    ),
    "a reference to an unknown factor": (
        {14: "  threads: ${thread}"},
        ("14: workload.threads: unknown factor 'thread'; did you mean 'threads'? (factors: journal, threads)"),
    ),
    "a reference to an unknown factor within text": (
        {13: "  mix: a\n  name: data-${thread}"},
        "14: workload.name: unknown factor 'thread'; did you mean 'threads'? (factors: journal, threads)",
    ),
    "a reference that is not closed": (
        {13: "  mix: a\n  name: data-${threads"},
        "14: workload.name: '${' is not closed by '}'; write $${ for a literal ${",
    ),
    "a reference in a key": (
        {13: "  mix: a\n  proportions: {'${threads}': 1%}"},
        ("14: workload.proportions.${threads}: a key cannot be varied; vary values, or name a group of settings"),
    ),
    "a reference where nothing can vary": (
        {15: 'replicates: {max: "${threads}"}'},
        (
            "15: replicates.max: '${threads}' cannot stand here: a factor acts only under host, system and w"
            "orkload; this is the same for all cells"
        ),
    ),
    "a reference among observers": (
        {15: 'observe: ["${journal}"]'},
        (
            "15: observe[0]: '${journal}' cannot stand here: a factor acts only under host, system and workl"
            "oad; this is the same for all cells"
        ),
    ),
    "a factor that is never used": (
        {14: "  threads: 4"},
        "5: factors.threads: factor threads is never used; write ${threads} where it should act",
    ),
    "a factor without levels": ({5: "  threads: []"}, "5: factors.threads: has no levels; list at least one"),
    "no factors at all under the key": (
        {3: "factors: {}", 4: "", 5: "", 9: "", 14: ""},
        "3: factors: has no factor; leave the key out if nothing is varied",
    ),
    "factors that are a list": (
        {3: "factors: [journal]", 4: "", 5: "", 9: "", 14: ""},
        "3: factors: should map names to levels, such as {threads: [1, 4]}",
    ),
    "a factor with a single value": (
        {5: "  threads: 4"},
        "5: factors.threads: should be a list of levels, not 4; write [4]",
    ),
    "a factor with a name that cannot be written": (
        {5: "  the threads: [1]"},
        (
            "5: factors.the threads: a factor's name should be letters, digits, '_' and '-', so that ${name}"
            " can be written"
        ),
    ),
    "a level that is null": (
        {5: "  threads: [1, null]"},
        ("5: factors.threads[1]: a level cannot be null; quote it if it is text, or name a group of settings"),
    ),
    "a level that is a list": (
        {5: "  threads: [1, [4]]"},
        (
            "5: factors.threads[1]: a level should be a single value, not a list; a group of settings needs "
            "a name: {name: {key: value}}"
        ),
    ),
    "a level that refers to a factor": (
        {5: '  threads: [1, "${journal}"]'},
        "5: factors.threads[1]: a level cannot refer to a factor; write its value",
    ),
    "a level listed twice": (
        {5: '  threads: [1, "1"]'},
        "5: factors.threads: the level '1' is listed twice; levels differ by how they are written",
    ),
    "a level that cannot stand in a table": (
        {4: '  journal: ["a\\nb"]'},
        ("4: factors.journal: a level should be 1 to 100 printable characters, not 'a\\nb'; it stands in tables"),
    ),
    "a group that is no mapping": (
        {5: "  threads: {one: 1}"},
        ("5: factors.threads.one: should be a mapping of settings, not 1; write {} for a level that sets nothing"),
    ),
    "a group that sets what is the same for all cells": (
        {5: "  threads:\n    few: {seed: 5}"},
        (
            "6: factors.threads.few.seed: a level can set only what is under host, system or workload; all e"
            "lse is the same for all cells"
        ),
    ),
    "a group with an unknown option": (
        {5: "  tuning:\n    few:\n      workload.thread: 1", 14: ""},
        (
            "7: workload.thread: unknown key; did you mean 'threads'? (keys: kind, mix, records, operations,"
            " duration, threads, theta, name, tables, proportions)"
        ),
    ),
    "a group with a bad key": (
        {5: "  tuning:\n    few:\n      workload..threads: 1", 14: ""},
        "7: workload..threads: has an empty part; write a dotted key such as workload.records",
    ),
    "a group that sets a key twice": (
        {5: "  tuning:\n    few:\n      workload.threads: 1\n      workload: {threads: 2}", 14: ""},
        ("8: factors.tuning.few.workload: workload.threads is set here and by 'workload.threads'; keep one of them"),
    ),
    "two factors that set the same key": (
        {5: "  tuning:\n    few: {workload.threads: 1}\n  other:\n    many: {workload: {threads: 8}}", 14: ""},
        "8: factors.other: workload.threads is also set by factor 'tuning'; one key, one factor",
    ),
    "a group that hides another factor": (
        {5: "  threads: [1, 2]\n  tuning:\n    few: {workload.threads: 1}"},
        (
            "7: factors.tuning: workload.threads: this replaces ${threads}, so factor threads would not act "
            "in these cells; vary another key"
        ),
    ),
    "a group that goes below a value": (
        {5: "  threads: [1, 2]\n  tuning:\n    few: {workload.mix.a: 1}"},
        "7: workload.mix.a: workload.mix holds 'a' and has no keys below it; set workload.mix as a whole",
    ),
    "an unknown observer": (
        {15: "observe: [machine, perf-stats]"},
        ("15: observe[1]: unknown observer 'perf-stats'; did you mean 'perf-stat'? (observers: machine, perf-stat)"),
    ),
    "an observer's unknown option": (
        {15: "observe:\n- machine\n- perf-stat: {event: [x]}"},
        "17: observe[1].perf-stat.event: unknown key; did you mean 'events'? (keys: events)",
    ),
    "an observer listed twice": (
        {15: "observe: [machine, machine]"},
        "15: observe[1]: 'machine' is listed twice; keep one",
    ),
    "an observer that is no name": (
        {15: "observe: [5]"},
        "15: observe[0]: should be the name of an observer or one {name: {options}}, not 5",
    ),
    "observers that are no list": (
        {15: "observe: machine"},
        "15: observe: should be a list of observers, such as [machine]; [] for none",
    ),
    "scales that are no mapping": (
        {16: "scales: [smoke]", 17: "", 18: "", 19: ""},
        "16: scales: should be a mapping of scale names to {study key: value}",
    ),
    "a scale that is no mapping": (
        {17: "  smoke: 5", 18: "", 19: ""},
        "17: scales.smoke: should be a mapping of study keys to values, such as {workload.records: 1000}",
    ),
    "a scale with a bad name": (
        {17: "  Smoke Test:"},
        "17: scales.Smoke Test: a scale's name should be lower-case letters, digits and hyphens",
    ),
    "a scale that changes the scales": (
        {18: "    scales.other: {}"},
        (
            "18: scales.smoke.scales.other: a scale cannot change the scales; set the study's own keys (at s"
            "cale 'smoke')"
        ),
    ),
    "an unknown key in a scale": (
        {18: "    workload.recrods: 10"},
        (
            "18: workload.recrods: unknown key; did you mean 'records'? (keys: kind, mix, records, operation"
            "s, duration, threads, theta, name, tables, proportions) (at scale 'smoke')"
        ),
    ),
    "a bad value in a scale": (
        {19: "    replicates: {min: two}"},
        "19: replicates.min: should be a whole number, not 'two' (at scale 'smoke')",
    ),
    "a scale that contradicts the rest": (
        {19: "    replicates: {min: 9}"},
        "15: replicates: min (9) is above max (5) (at scale 'smoke')",
    ),
    "a key written twice": (
        {13: "  mix: a\n  mix: b"},
        "14: mix: this key is written twice, also on line 13; keep one of them",
    ),
    "a key that is a number": ({13: "  mix: a\n  5: b"}, "14: the key 5 is not text; quote it"),
    "a key that is a list": ({13: "  mix: a\n  [a]: b"}, "14: a key should be a word, not a list"),
    "a key that is a truth value": ({13: "  mix: a\n  true: b"}, "14: the key true is not text; quote it"),
    "a merge key": (
        {13: "  mix: a\n  <<: {a: b}"},
        "14: the merge key '<<' is not part of YAML 1.2; write the keys out",
    ),
    "a number that overflows": (
        {13: "  mix: a\n  records: 1e999"},
        "14: '1e999' is too large a number; quote it if it is text",
    ),
    "a whole number that overflows": (
        {13: "  mix: a\n  records: 99999999999999999999"},
        "14: '99999999999999999999' is too large a number; quote it if it is text",
    ),
    "infinity": ({13: "  mix: a\n  theta: .inf"}, "14: .inf is not a quantity; write a finite number"),
    "not a number": ({13: "  mix: a\n  theta: .nan"}, "14: .nan is not a quantity; write a finite number"),
    "a number with a leading zero": (
        {13: "  mix: a\n  records: 0100"},
        "14: '0100' begins with 0, which some read as octal; drop the 0, or quote it",
    ),
    "a tag of Python": (
        {13: "  mix: !!python/object/apply:os.system ['true']"},
        "13: the tag '!!python/object/apply:os.system' is not taken; write the value without it",
    ),
    "a tag of one's own": ({13: "  mix: !mine a"}, "13: the tag '!mine' is not taken; write the value without it"),
    "a standard tag": ({13: "  mix: !!str a"}, "13: the tag '!!str' is not taken; write the value without it"),
    "an unknown alias": ({13: "  mix: *a"}, "13: no anchor &a stands above"),
    "an alias within itself": (
        {13: "  mix: &a [*a]"},
        "13: the alias *a stands within what it refers to; write the value out",
    ),
    "wrong use of an alias is named where it is used": (
        {4: "  journal: &j [delete, wal]", 13: "  mix: *j"},
        "13: workload.mix: should be one of a, b, c; not a list",
    ),
    "a tab for indentation": (
        {13: "\tmix: a"},
        (
            "13: not valid YAML: while scanning a plain scalar: found a tab character that violates indentat"
            "ion; indent with spaces, not tabs"
        ),
    ),
    "a bracket that is not closed": (
        {13: "  mix: [a"},
        "14: not valid YAML: while parsing a flow sequence: did not find expected ',' or ']'",
    ),
    "a second document": ({15: "---\na: 1"}, "15: a second YAML document begins here; write one study a file"),
    "a control character": ({13: "  mix: a\x07"}, "13: character U+0007 is not allowed in YAML; remove it"),
    "an escaped control character": ({13: '  mix: "a\\0"'}, "13: 'a\\x00' holds the character U+0000; remove it"),
    "only the first of several is told": (
        {2: "", 13: "  mx: a", 15: "sed: 5"},
        "1: question: this required key is missing (and 2 more)",
    ),
    "too many cells": (
        {
            4: f"  journal: [{', '.join(f'j{n}' for n in range(101))}]",
            5: f"  threads: [{', '.join(map(str, range(100)))}]",
        },
        "3: factors: the levels make 10,100 cells, and 10,000 are the most; vary less, or split the study",
    ),
    "a number of a million digits": (
        {13: f"  mix: a\n  records: {'9' * 900_000}"},
        f"14: '{'9' * 42}...{'9' * 15}' is too large a number; quote it if it is text",
    ),
    "a size that overflows": (
        {10: f"    cache_size: {'9' * 400} GiB"},
        f"10: system.config.cache_size: '{'9' * 42}...{'9' * 11} GiB' is not a size: write a number with a unit, "
        "such as 8 GiB (units: B, kB, KB, MB, GB, TB, KiB, MiB, GiB, TiB)",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_message_names_line_key_and_remedy_for(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines, expected = CASES[name]
    assert message(changed(lines), tmp_path, monkeypatch) == f"study.yaml:{expected}"


@pytest.mark.parametrize("name", CASES)
def test_the_message_is_the_same_without_libyaml_for(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines, expected = CASES[name]
    monkeypatch.setattr(loader, "_LOADER", yaml.SafeLoader)
    found = message(changed(lines), tmp_path, monkeypatch)
    if "not valid YAML" in expected:  # the two parsers word what they found each in their own way
        assert found.startswith(("study.yaml:13: not valid YAML: ", "study.yaml:14: not valid YAML: "))
    else:
        assert found == f"study.yaml:{expected}"


def message(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What `check` says of the text, named as a user would name the file."""
    monkeypatch.chdir(folder)
    with pytest.raises(StudyError) as caught:
        dyno.study.check(Path(written(folder, text).name), KINDS)
    return str(caught.value)
