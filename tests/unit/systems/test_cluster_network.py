"""What a cluster sent over the network of its nodes."""

from __future__ import annotations

from types import SimpleNamespace

from dyno.systems.cluster import Cluster


def test_all_that_nodes_and_their_client_sent_counts_while_there_is_a_network() -> None:
    network = SimpleNamespace(traffic=lambda: {"n1": (5, 100), "n2": (7, 20), "client": (9, 3)})
    assert Cluster.sent_bytes(SimpleNamespace(_network=network)) == 123  # type: ignore[arg-type]
    assert Cluster.sent_bytes(SimpleNamespace(_network=None)) is None  # type: ignore[arg-type]
