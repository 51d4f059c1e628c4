"""The page: whole, safe, the same everywhere."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import subprocess
import sys
from collections import Counter
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import fake_results
import pytest

from dyno.analysis import analyse
from dyno.report import write
from dyno.report.figures import style


class Page(HTMLParser):
    """What a browser would see: elements, ids, addresses and text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.html, self.text = html, ""
        self.elements: Counter[str] = Counter()
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.elements[tag] += 1
        for name, value in attrs:
            if name == "id":
                self.ids.append(value)
            if name in ("src", "href", "xlink:href", "action"):
                self.addresses.append(value)

    handle_startendtag = handle_starttag

    def handle_data(self, data):
        self.text += data


def write_report(results, folder: Path) -> Path:
    return write(results, analyse(results.study, results.runs, ended=results.ended), folder)


@pytest.fixture(scope="module")
def eight(tmp_path_factory):
    folder = tmp_path_factory.mktemp("eight")
    return Page(write_report(fake_results.sampled(fake_results.eight_cells()), folder).read_text()), folder


def test_of_many_pairs_those_with_the_first_level_are_read_and_the_others_folded(tmp_path) -> None:
    study = fake_results.make_study({"size": [str(level) for level in range(8)]}, "size")
    page = Page(
        write_report(
            fake_results.FakeResults(study, fake_results.make_runs(study, 3, trouble=False)), tmp_path
        ).read_text()
    )
    assert "21 more, between the other levels" in page.text
    assert page.html.index("size 7 ") < page.html.index("21 more, between")


def test_the_page_needs_nothing_but_itself(eight) -> None:
    page, _ = eight
    assert all(
        address.startswith(("data:", "#")) or re.fullmatch(r"figures/[\w-]+\.(png|svg)", address)
        for address in page.addresses
    )
    assert "@import" not in page.html
    assert "default-src 'none'" in page.html
    assert page.elements["link"] == page.elements["img"] == page.elements["iframe"] == 0


def test_the_only_script_is_the_one_whose_checksum_is_allowed(eight) -> None:
    page, _ = eight
    assert page.elements["script"] == 1
    script = re.search(r"<script>(.*?)</script>", page.html, re.DOTALL)[1]
    checksum = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"'sha256-{checksum}'" in page.html


def test_its_parts_come_in_the_order_of_what_a_reader_needs_first(eight) -> None:
    page, _ = eight
    parts = ["notes", "cells", "comparisons", "figures", "variation", "shape", "drift", "timelines", "failures"]
    parts += ["environment", "repeat", "words"]
    assert [part for part in page.ids if part in parts] == parts
    charts = ["heat-map", "lines", "bars", "forest", "residuals", "speed-up", "drift"]
    charts = [f"figure-{name}" for name in charts]
    assert [part for part in page.ids if part in charts] == charts
    assert page.text.index("Is SQLite's write-ahead log faster") < page.text.index("wal is faster than delete in all 4")


def test_no_two_elements_have_the_same_id(eight) -> None:
    page, _ = eight
    assert [name for name, count in Counter(page.ids).items() if count > 1] == []


def test_one_run_of_each_cell_can_be_chosen_and_the_first_is_seen_without_a_script(eight) -> None:
    page, _ = eight
    shown = re.findall(r'<figure data-run="([^"]+)" aria-label="[^"]*"( hidden)?>', page.html)
    assert len(shown) == page.elements["option"] == 11  # eight cells, and three invalid runs that left tables
    assert [hidden for _, hidden in shown] == ["", *[" hidden"] * 10]


def test_every_figure_lies_beside_the_page_as_svg_png_and_csv(eight) -> None:
    _, folder = eight
    names = {path.name for path in (folder / "figures").iterdir()}
    stems = {"heat-map", "lines", "bars", "forest", "residuals", "speed-up", "drift"}
    assert {f"{stem}.{end}" for stem in stems for end in ("svg", "png", "csv")} <= names
    assert len(names) == 3 * (7 + 11)
    assert all((folder / "figures" / f"{stem}.png").read_bytes().startswith(b"\x89PNG") for stem in stems)
    assert not [name for name in names if name.endswith(".tmp")]


def test_a_drawing_is_in_the_page_once_and_its_link_leads_to_the_same(eight) -> None:
    # A copy of each in its link made more than half of the page; the script takes what it saves from the drawing.
    page, folder = eight
    links = re.findall(r'<a download="([\w-]+)\.svg" data-drawing href="figures/\1\.svg">SVG</a>', page.html)
    assert sorted(links) == sorted(path.stem for path in (folder / "figures").glob("*.svg"))
    for name in links:
        assert page.html.count((folder / "figures" / f"{name}.svg").read_text()) == 1
    assert "image/svg+xml;base64" not in page.html
    assert "[data-drawing]" in re.search(r"<script>(.*?)</script>", page.html, re.DOTALL)[1]


def test_a_download_link_of_a_table_carries_the_file_itself(eight) -> None:
    page, folder = eight
    link = re.search(r'download="heat-map.csv" href="data:text/csv;charset=utf-8,([^"]+)"', page.html)
    assert unquote(unescape(link[1])) == (folder / "figures" / "heat-map.csv").read_text()


def test_a_copied_folder_gives_the_same_page_and_figures_byte_for_byte(eight, tmp_path) -> None:
    _, folder = eight
    copied = fake_results.sampled(fake_results.eight_cells())
    copied.folder = tmp_path
    write_report(copied, tmp_path / "copy")
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            assert (tmp_path / "copy" / path.relative_to(folder)).read_bytes() == path.read_bytes(), path.name


def test_writing_again_replaces_the_report(tmp_path) -> None:
    (tmp_path / "report.html").write_text("torn")
    assert write_report(fake_results.nothing(), tmp_path).read_text().startswith("<!doctype html>")


def test_no_path_of_the_machine_that_reported_is_in_the_page(eight) -> None:
    page, folder = eight
    assert "/nowhere/at/all" not in page.html
    assert str(folder) not in page.html


def test_what_a_user_wrote_is_text_and_never_html(tmp_path) -> None:
    results = fake_results.sampled(fake_results.hostile())
    results.study_yaml = "</pre><script>alert('yaml')</script>"
    page = Page(write_report(results, tmp_path).read_text())
    assert page.elements["script"] == 1
    assert page.elements["i"] == page.elements["b"] == 0
    for word in ("name", "question", "f", "l", "e", "cause", "yaml"):
        assert f"<script>alert('{word}')</script>" in page.text
        assert f"<script>alert('{word}')" not in page.html


def test_a_study_without_runs_has_a_page_that_says_so(tmp_path) -> None:
    page = Page(write_report(fake_results.nothing(), tmp_path).read_text())
    assert "No answer: there is no ok run." in page.text
    assert "No run left samples or intervals." in page.text
    assert page.elements["svg"] == 0


def test_a_study_with_one_cell_has_a_page(tmp_path) -> None:
    page = Page(write_report(fake_results.one_cell(), tmp_path).read_text())
    assert "Throughput is 393.1 [257.9, 528.2] ops/s (n = 4 runs)." in page.text.replace("\xa0", " ")
    assert "comparisons" not in page.ids


def test_causes_shape_and_drift_are_told_in_words_and_drawn(tmp_path) -> None:
    page = Page(write_report(fake_results.sampled(fake_results.drifting()), tmp_path).read_text())
    text = page.text.replace("\xa0", " ")
    assert "Of throughput, threads explains 93% of the variation" in text
    assert "mesh has a lower throughput than pool up to threads 8.8 [2.92, 10], and a higher one beyond." in text
    assert "seem to cross" not in text  # the second crossing is not shown
    assert "a peak at threads 23.1 [22.3, 26.4]" in text
    assert "it changes at run 49 by -6.1%; 2 runs lie far from the others and are kept." in text
    figures = [part for part in page.ids if part.startswith("figure-")]
    assert figures[-4:] == ["figure-residuals", "figure-shape", "figure-speed-up", "figure-drift"]
    assert not re.search(r">NaN<|undefined|Infinity", page.html)


def test_one_cell_says_why_nothing_is_explained(tmp_path) -> None:
    page = Page(write_report(fake_results.one_cell(), tmp_path).read_text())
    assert "What explains the variation of throughput is not told: there is nothing to vary in one cell." in page.text
    assert "Drift of throughput was not looked for: 4 runs of cells with two or more are too few" in page.text
    assert "shape" not in page.ids


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    return Page(write_report(fake_results.expected(), tmp_path_factory.mktemp("expected")).read_text())


def test_targets_and_what_was_published_come_after_the_comparisons(expected) -> None:
    parts = ["comparisons", "targets", "published", "observed", "claims", "figures"]
    assert [part for part in expected.ids if part in parts] == parts


def test_every_verdict_is_a_word_with_a_sign_and_not_a_colour_alone(expected) -> None:
    shown = re.findall(r'<span class="verdict (\w+)">(. [a-z ]+)</span>', expected.html)
    assert set(shown) == {
        ("good", "✓ met"),
        ("bad", "✗ missed"),
        ("warn", "? cannot tell"),
        ("good", "✓ agrees"),
        ("bad", "✗ differs"),
        ("good", "✓ confirmed"),
        ("bad", "✗ contradicted"),
        ("warn", "? open"),
    }
    for figure in (
        "4,000 3,900 to 4,100",
        "2.20x [2.13, 2.28]",
        "0.8x",
        "figures.csv",
        "it needs hardware counters",
        "the study has no observer `perf-stat`, which counts it",
        "published, to delete",
        "seen.csv",
    ):
        assert figure in re.sub(r"\s+", " ", expected.text)


def test_a_page_of_a_study_that_expects_nothing_has_no_such_parts(eight) -> None:
    page, _ = eight
    assert not {"targets", "published", "observed", "claims"} & set(page.ids)
    assert "contradicted" not in page.text


def test_what_was_published_is_text_and_never_markup(tmp_path) -> None:
    page = Page(write_report(fake_results.expected("<script>alert('p')</script>"), tmp_path).read_text())
    assert page.elements["script"] == 1
    assert page.text.count("<script>alert('p')</script>") >= 5


def test_the_environment_is_shown_down_to_its_last_value(eight) -> None:
    page, _ = eight
    for fact in ("Example CPU 9000 <at> 2.4 GHz", "vm.swappiness", "53687091200", "constant_tsc", "not known"):
        assert fact in page.text


def test_what_figures_have_of_paper_and_ink_is_the_page_s_own_in_light_and_dark(eight) -> None:
    page, _ = eight
    for colour in (style.INK, style.SOFT, style.GRID, style.WASH, style.PAPER):
        assert re.search(rf'figure svg \[(fill|stroke)="{colour}"\] {{', page.html), colour


def luminance(colour) -> float:
    """WCAG 2.2, relative luminance."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour]
    return sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(a, b) -> float:
    """WCAG 2.2, contrast ratio; 3 is the least for figures and large text."""
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def turned_over(colour):
    """W3C Filter Effects: invert(1), then hue-rotate(180deg), whose matrix is 2 x luma - colour."""
    inverted = [1 - part for part in colour]
    luma = sum(share * part for share, part in zip((0.213, 0.715, 0.072), inverted, strict=True))
    return [min(max(2 * luma - part, 0), 1) for part in inverted]


def cells_of_the_map(svg):
    """Of each cell its colour and that of its text, by where they stand."""
    rects = re.findall(r'd="M([\d.]+),([\d.]+)[^"]*" fill="rgb\((\d+), (\d+), (\d+)\)"', svg)
    words = re.findall(r'translate\(([\d.]+),([\d.]+)\)"[^>]*font-size="13px"[^>]*fill="#(\w{6})"', svg)
    for x, y, *parts in rects:
        (ink,) = [ink for a, b, ink in words if 0 < float(a) - float(x) < 122 and 0 < float(b) - float(y) < 46]
        yield [int(part) / 255 for part in parts], [int(ink[at : at + 2], 16) / 255 for at in (0, 2, 4)]


def test_the_map_can_be_read_in_light_and_turned_over_in_dark_where_nothing_glares(tmp_path) -> None:
    study = fake_results.make_study({"mode": ["a", "b", "c", "d"], "size": [1, 2, 3, 4, 5, 6]}, "mode")
    runs = fake_results.make_runs(study, 2, trouble=False)
    runs = [run.model_copy(update={"responses": {"throughput": 100.0 + run.slot.cell}}) for run in runs]
    html = write_report(fake_results.FakeResults(study, runs), tmp_path).read_text()
    dark = html[html.index("@media screen and (prefers-color-scheme: dark)") :]
    assert re.match(r"[^}]*#figure-heat-map svg {[^}]*filter: invert\(1\) hue-rotate\(180deg\);", dark)
    cells = list(cells_of_the_map((tmp_path / "figures" / "heat-map.svg").read_text()))
    assert len(cells) == 24
    assert min(contrast(ground, ink) for ground, ink in cells) >= 3
    assert min(contrast(turned_over(ground), turned_over(ink)) for ground, ink in cells) >= 3
    assert max(luminance(ground) for ground, _ in cells) > 0.8
    assert max(luminance(turned_over(ground)) for ground, _ in cells) < 0.6


WRITES_MANY = """
import re, sys
from pathlib import Path
import fake_results
from dyno.analysis import analyse
from dyno.report import write
results = fake_results.many()
page = write(results, analyse(results.study, results.runs, ended=results.ended), Path(sys.argv[1]))
most = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]
print(page.stat().st_size, most)
"""


@pytest.mark.slow
def test_ten_thousand_runs_are_reported_within_bounds(tmp_path) -> None:
    # In a process of its own, whose memory is that of the report alone; getrusage would count that of whoever started
    # it too. How long it takes, benchmarks say.
    said = subprocess.run(
        [sys.executable, "-c", WRITES_MANY, tmp_path],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])},
        capture_output=True,
        text=True,
        check=True,
    )
    size, most_kib = map(int, said.stdout.split())
    assert size < 3_200_000
    assert most_kib < 1_000_000


@pytest.fixture(scope="module")
def fifty_four(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fifty_four")
    return Page(write_report(fake_results.fifty_four_cells(), folder).read_text()), folder


def test_a_study_of_deployments_has_what_differs_and_the_overall_ratios_before_its_cells(fifty_four) -> None:
    page, folder = fifty_four
    parts = ["notes", "confounders", "overall", "cells", "comparisons", "figures"]
    assert [part for part in page.ids if part in parts] == parts
    found = page.html[page.html.index('id="confounders"') : page.html.index('id="overall"')]
    assert "io_engine" in found
    assert "innodb_log_file_buffering" in found
    assert "innodb_flush_method" not in found  # the study varies it
    assert (folder / "figures" / "overall.svg").is_file()
    overall = page.html[page.html.index('id="overall"') : page.html.index('id="cells"')]
    assert overall.count("workload=a (6)") >= 1
    assert "container-volume" in overall


def test_every_table_of_cells_has_what_the_device_really_read_and_wrote(fifty_four) -> None:
    page, _ = fifty_four
    cells = page.html[page.html.index('id="cells"') : page.html.index('id="comparisons"')]
    assert cells.count(">read<br>B/op</th>") == cells.count(">written<br>B/op</th>") == cells.count("<table>") > 10


def test_sentences_of_many_single_comparisons_are_folded_where_the_overall_ratios_stand_above(fifty_four) -> None:
    page, _ = fifty_four
    assert "36 single comparisons with native" in page.text
    assert "18 curves over threads" in page.text
