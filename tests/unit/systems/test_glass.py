"""What the engine glass can be asked for, how it is reached, and what its functions belong to."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from dyno.hosts import LocalHost
from dyno.hosts.local import core_binary
from dyno.model.assemblies import COMPONENTS, KERNEL, Assembly, feasible, parse, path
from dyno.model.base import RunError
from dyno.systems.base import Place
from dyno.systems.glass import GlassOptions, GlassParts, GlassSystem


def system(host: LocalHost, folder: Path, **options: object) -> GlassSystem:
    place = Place(host=host, data=folder / "data", logs=folder / "logs", core="dyno-core")
    return GlassSystem(GlassOptions.model_validate(options), place)


def test_there_are_80_assemblies_and_each_is_known_by_its_name() -> None:
    every = list(feasible())
    assert len(every) == len({each.components for each in every}) == 80
    assert all(parse(each.name) == each for each in every)


def test_the_path_leads_from_all_components_to_none_by_single_steps() -> None:
    names = [each.name for each in path()]
    assert names[0] == "+".join(COMPONENTS)
    assert names[4:6] == ["buffer+transactions+catalogue", "buffer+transactions+catalogue+large-pages"]
    assert names[-2:] == ["transactions", "none"]
    assert all(len(a.components) - len(b.components) in (0, 1) for a, b in zip(path(), path()[1:], strict=False))


@pytest.mark.parametrize(
    ("assembly", "why"),
    [
        ("log+buffer", "transactions cannot be absent where there are log"),
        ("full+brakes", "no component is called 'brakes'; there are keys, log"),
        ("none+large-pages", "only where components are removed in the publication's order"),
        ("full+outlined", "the observer counted takes it by itself"),
        ("kernel+log", "no component is called 'kernel'"),
        ("full+log", "log is named twice"),
        ("log+transactions+log", "log is named twice"),
        ("log+transactions+large-pages", r"larger pages in buffer\+transactions\+catalogue\+large-pages"),
    ],
)
def test_what_there_is_not_is_refused_with_what_there_is(assembly: str, why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        GlassOptions(assembly=assembly)


def test_a_log_that_lasts_is_refused_where_pages_do_not() -> None:
    with pytest.raises(ValidationError, match=r"log: synced would keep what assembly .* does not"):
        GlassOptions(assembly="log+transactions")
    assert GlassOptions(assembly="log+transactions", log="memory").log == "memory"


def test_without_a_buffer_manager_nothing_lasts_and_no_folder_is_given(host: LocalHost, tmp_path: Path) -> None:
    endpoint = system(host, tmp_path, assembly="none").ready(1.0)
    assert (endpoint.volatile, endpoint.settings) == (True, {"assembly": "none"})
    lasting = system(host, tmp_path, assembly="full", pool="1 MiB").ready(1.0)
    assert not lasting.volatile
    assert lasting.settings == {
        "assembly": "+".join(COMPONENTS),
        "folder": str(tmp_path / "data"),
        "pool_bytes": 2**20,
        "preload": False,
        "log": "synced",
    }


def test_what_is_on_the_path_has_a_build_that_keeps_components_apart(host: LocalHost, tmp_path: Path) -> None:
    for assembly in path():
        made = system(host, tmp_path, assembly=assembly.name, log="memory")
        builds = made.builds(made.ready(1.0))
        assert list(builds) == ["optimised", "outlined"]
        assert builds["outlined"].settings["assembly"] == f"{assembly.name}+outlined"
    for name in (KERNEL, "keys"):
        other = system(host, tmp_path, assembly=name)
        assert list(other.builds(other.ready(1.0))) == ["optimised"]


def test_one_client_is_let_in_where_nothing_keeps_several_apart() -> None:
    several = [each.name for each in feasible() if GlassSystem.most_clients(_options(each)) is None]
    assert len(several) == 16
    assert all("locks+latches" in name for name in several)


def _options(assembly: Assembly) -> GlassOptions:
    return GlassOptions(assembly=assembly.name, log="memory")


def test_what_an_assembly_cannot_serve_is_refused() -> None:
    def why(assembly: str, workload: str = "tpcc", *, rolls_back: bool = False) -> str | None:
        return GlassSystem.refuses(GlassOptions(assembly=assembly, log="memory"), workload, rolls_back=rolls_back)

    assert why(KERNEL, "ycsb") == "the kernel has TPC-C's tables and no others: it cannot serve ycsb"
    assert why(KERNEL) is None
    assert "assembly none undoes nothing" in (why("none", rolls_back=True) or "")
    assert why("none") is None
    assert why("none", "ycsb") is None
    assert why("transactions", rolls_back=True) is None


def test_a_pool_that_is_larger_than_the_machine_is_refused(host: LocalHost, tmp_path: Path) -> None:
    place = Place(host=host, data=tmp_path / "data", logs=tmp_path, core=core_binary())
    with pytest.raises(RunError, match=r"pool: 1,?000 TiB are more than this machine's memory"):
        GlassSystem(GlassOptions.model_validate({"pool": "1000 TiB"}), place).provision(10.0)
    GlassSystem(GlassOptions.model_validate({"pool": "1 MiB"}), place).provision(10.0)


@pytest.mark.parametrize(
    ("symbol", "component"),
    [
        ("<dyno_glass::assembly::outlined::Outlined<T> as dyno_glass::locks::Locks<L>>::try_lock", "locks"),
        ("<dyno_glass::latch::real::RwLatch as dyno_glass::latch::Latch>::lock_shared", "latches"),
        ("dyno_glass::assembly::outlined::unpin", "buffer"),
        ("dyno_glass::btree::Tree<A>::insert", "trees"),
        ("dyno_glass::engine::boundary::lookup", "engine"),
        ("dyno_glass_tpcc::engine::store::EngineStore<A>::row", "transaction"),
        ("<dyno_glass_tpcc::kernel::store::KernelStore<K> as dyno_tpcc::store::Store>::begin", "kernel"),
        ("dyno_tpcc::transactions::new_order", "transaction"),
        ("core::ptr::drop_in_place<dyno_glass::pages::pool::Pin>", None),
        ("parking_lot::raw_rwlock::RawRwLock::lock_shared_slow", None),
        ("__memcpy_avx_unaligned_erms", None),
    ],
)
def test_a_function_belongs_to_its_module_and_one_of_a_library_to_its_caller(
    symbol: str, component: str | None
) -> None:
    assert GlassParts().component(symbol) == component


def test_calls_are_the_functions_that_keep_them_apart() -> None:
    parts = GlassParts()
    assert parts.call("dyno_glass::engine::boundary::lookup") == "lookup"
    assert parts.call("dyno_glass::engine::boundary::lookup::h0123456789abcdef") == "lookup"
    assert parts.call("dyno_glass::engine::session::Session<A>::lookup") is None
    assert parts.call("dyno_glass::engine::boundary::lookup::{{closure}}") is None
