"""Mutants of clusters: who can come in, what is lost, and what of noise stays."""

from tests.mutants.mutant import mutant

CONNECTION, WORKERS = "cluster/connection.py", "cluster/workers.py"
OWN, NODES = "tests/cluster/test_own.py", "tests/cluster/test_two_nodes.py"

CLUSTER = [
    mutant(
        "cluster: no token",
        "whoever is on the machine runs code as the owner of the cluster",
        f"{OWN}::test_a_cluster_of_our_own_is_closed_to_others",
        (CONNECTION, 'RAY_AUTH_MODE="token", RAY_AUTH_TOKEN', 'RAY_AUTH_MODE="disabled", RAY_AUTH_TOKEN'),
    ),
    mutant(
        "cluster: listens to the network",
        "whoever is on the network reaches the ports of a cluster that was meant for one machine",
        f"{OWN}::test_a_cluster_of_our_own_is_closed_to_others",
        (CONNECTION, "    ray_constants.ENABLE_RAY_CLUSTER = False\n", ""),
        (CONNECTION, 'told = {**told, ray_constants.ENABLE_RAY_CLUSTERS_ENV_VAR: "0"}', "told = dict(told)"),
    ),
    mutant(
        "cluster: files open to all",
        "others on the machine read what workers write, and talk to their sockets",
        f"{OWN}::test_a_cluster_of_our_own_is_closed_to_others",
        (CONNECTION, '_temp_dir=str(folder / "r")', "_temp_dir=str(folder)"),
    ),
    mutant(
        "cluster: another one starts by itself",
        "when a server ends a cluster is begun that listens to the network, with a token in its owner's home",
        f"{OWN}::test_what_outlives_its_cluster_starts_no_other",
        (CONNECTION, '"RAY_ENABLE_AUTO_CONNECT": "0"', '"RAY_ENABLE_AUTO_CONNECT": "1"'),
    ),
    mutant(
        "cluster: children collect what they inherit",
        "a server with a gallery on a cluster answers nobody any more, once a session of it has collected garbage",
        f"{OWN}::test_children_leave_their_parents_connections_alone",
        (CONNECTION, "    _keep_inherited()\n    return ray\n", "    return ray\n"),
    ),
    mutant(
        "cluster: says nothing of an open one",
        "people send recordings to a cluster that lets everybody in",
        f"{OWN}::test_what_others_may_do_to_a_cluster_is_said",
        (CONNECTION, '"").lower() == "token"', '"").lower() != "disabled"'),
    ),
    mutant(
        "cluster: a token of ours taken for one that is asked for",
        "people send recordings to a cluster that lets everybody in",
        f"{OWN}::test_a_token_of_ours_does_not_hide_that_a_cluster_asks_for_none",
        (CONNECTION, "if _has_token(os.environ) and takes_anybody(address):", "if not _has_token(os.environ):"),
    ),
    mutant(
        "cluster: items lost between batches",
        "some recordings are silently left out of what is spread",
        f"{NODES}::test_every_item_is_done_once_and_dead_workers_are_replaced",
        (
            WORKERS,
            "for _, place in zip(range(self._ahead - len(waiting)), places, strict=False):",
            "for place, _ in zip(places, range(self._ahead - len(waiting)), strict=False):",
        ),
    ),
]
