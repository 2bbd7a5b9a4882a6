"""Spark inside a query, in a cluster: a stored table that is refreshed while pods are killed, and `engine: spark`."""

import shutil
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv, json

from joinery.adapters.sources.opening import reader_of
from joinery.adapters.sources.pieces import Piece
from joinery.cli.query_file import parsed
from joinery.join.plan import JoinPlan
from joinery.machine.hybrid_module import stored_schema
from joinery.oracle.compare import compare
from joinery.oracle.table_truth import table_truth
from joinery.oracle.truth import RecordedStream
from tests.cluster import rights
from tests.cluster.cache import say
from tests.cluster.clusters import Cluster, CommandFailed
from tests.cluster.pushing import rows_of
from tests.cluster.sparked import TOKEN, spark_release, volume
from tests.cluster.traffic import pair, pairs
from tests.cluster.user import COLUMNS, HERE, ROOT, User, join_query

RATE, SECONDS, KEYS = 800, 150, 6000
BEGUN = ("Running", "Scaling", "Finished")
VOLUMES = ("tables", "results", "segments", "work")
WORKLOADS = "pods,statefulsets,deployments,services,configmaps,serviceaccounts,rolebindings,jobs,pvc,networkpolicies"


@pytest.fixture(scope="module")
def sparked(cluster: Cluster) -> Iterator[User]:
    if cluster.audit_log is None:
        pytest.skip("the tables lie on this machine's disk, which the nodes of this cluster do not have")
    with spark_release(cluster) as user:
        yield user
    cluster.kubectl("delete", "pv", *VOLUMES, "--ignore-not-found", timeout_s=60)


@pytest.fixture(scope="module")
def disks(sparked: User) -> dict[str, Path]:
    """Tables and results have claims of ours; the others' are made by the operator."""
    made = {name: volume(sparked, name) for name in ("tables", "results")}
    made["segments"] = volume(sparked, "segments", is_claimed=False)
    return {**made, "work": volume(sparked, "work", "ReadWriteOnce", is_claimed=False)}


def hybrid_query() -> dict[str, Any]:
    table = {
        "path": "information", "volume": {"claim": "tables"}, "refresh": "2s", "theta": "16Ki", "memory": "64Ki",
        "maxWait": "500ms",
    }  # fmt: skip
    streams = [
        {"name": "s", **COLUMNS}, {"name": "t", "schema": {"k": "int64", "value": "int64"}, "table": table},
    ]  # fmt: skip
    disk = {"storageClass": "segments", "size": "1Gi", "accessMode": "ReadWriteMany"}
    return join_query(
        "hybrid",
        streams=streams,
        join={"on": ["k"], "type": "left"},
        sinks=[{"file": {"path": "hybrid.parquet", "volume": {"claim": "results"}}}],
        partitions=8,
        replicas=2,
        scaling={"mode": "Manual"},
        pods={"spark": {"executors": 2, "cores": 1, "volume": disk}},
    )


def table_of(generation: int) -> pa.Table:
    """Some keys are missing, some are there twice, and both differ from one generation to the next."""
    keys = np.arange(KEYS)
    keys = keys[keys % 7 != generation]
    keys = np.concatenate([keys, keys[keys % 13 == generation]])
    return pa.table({"k": keys, "value": keys * 10 + np.where(keys % 3 == 0, generation, 0)})


def write_table(disk: Path, generation: int) -> None:
    """Put in place by rename."""
    (disk / "information").mkdir(exist_ok=True)
    pq.write_table(table_of(generation), disk / ".next")
    (disk / ".next").rename(disk / "information" / "part-0.parquet")


def push(user: User) -> None:
    """A pod that pushes rows for a while."""
    script = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "pushing"}}
    user.apply({**script, "data": {"pushing.py": (HERE / "pushing.py").read_text()}})
    flags = ["--rate", str(RATE), "--seconds", str(SECONDS), "--keys", str(KEYS), "--tls", "/tls"]
    container = {
        "name": "pushing", "image": user.cluster.joinery_image, "imagePullPolicy": "IfNotPresent",
        "command": ["python", "/script/pushing.py", f"hybrid-gateway.{user.namespace}.svc:7400", "s", *flags],
        "env": [{"name": "JOINERY_TOKEN", "value": TOKEN}],
        "volumeMounts": [{"name": "script", "mountPath": "/script"}, {"name": "tls", "mountPath": "/tls"}],
    }  # fmt: skip
    volumes = [
        {"name": "script", "configMap": {"name": "pushing"}}, {"name": "tls", "secret": {"secretName": "hybrid-tls"}},
    ]  # fmt: skip
    spec = {"restartPolicy": "Never", "containers": [container], "volumes": volumes}
    user.apply({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "pushing"}, "spec": spec})


def running(user: User, query: str, role: str) -> list[str]:
    """Names of the pods of a role that run and are not told to end."""
    pods = user.all("pods", f"joinery.dev/joinquery={query},joinery.dev/role={role}")
    alive = (one for one in pods if one["status"]["phase"] == "Running" and "deletionTimestamp" not in one["metadata"])
    return [one["metadata"]["name"] for one in alive]


def kill(user: User, pod: str) -> str:
    """At once; the pod's name."""
    user.kubectl("delete", "pod", pod, "--force", "--grace-period=0")
    return pod


def newest(disk: Path) -> int:
    return max((int(path.stem) for path in (disk / "segments" / "versions").glob("*.relation")), default=0)


@pytest.mark.timeout(900)
def test_a_hybrid_query_is_exact_while_the_table_is_refreshed_and_spark_s_pods_are_killed(
    sparked: User, disks: dict[str, Path]
) -> None:
    sparked.apply(hybrid_query())
    sparked.until("it says why", lambda: any("stored table" in one for one in sparked.events("hybrid")), 180)
    assert "False" == sparked.condition("hybrid", "TableAvailable")
    write_table(disks["tables"], 0)
    sparked.ready("hybrid", 240)
    assert "True" == sparked.condition("hybrid", "TableAvailable")
    sparked.until("two executors are pods", lambda: len(running(sparked, "hybrid", "executor")) == 2, 60)
    push(sparked)
    sparked.until("rows are joined", lambda: sparked.status("hybrid").get("results", 0) > 0, 60)
    generations = {1: 0}
    write_table(disks["tables"], 1)
    sparked.until("it is being cut", (disks["segments"] / "segments" / "segments" / "2").exists, 30)
    gone = kill(sparked, running(sparked, "hybrid", "executor")[0])
    second = sparked.until("the table is cut again", lambda: (v := newest(disks["segments"])) > 1 and v, 90)
    generations[second] = 1
    sparked.until("another executor", lambda: len({*running(sparked, "hybrid", "executor")} - {gone}) == 2, 60)
    kill(sparked, "hybrid-lookup-0")
    write_table(disks["tables"], 2)
    third = sparked.until("and again, after a restart", lambda: (v := newest(disks["segments"])) > second and v, 120)
    generations[third] = 2
    sparked.finished("hybrid", 300)
    found = pq.read_table(disks["results"] / "hybrid.parquet")
    assert {0, 1, 2} == {generations[version] for version in set(found["t_version"].to_pylist())}
    assert batch_join(found, generations) == as_rows(found.select(["s_n", "s_k", "t_k", "t_value", "t_version"]))
    assert sparked.status("hybrid")["results"] == found.num_rows
    leaves_nothing(sparked, "hybrid")


def batch_join(found: pa.Table, generations: dict[int, int]) -> "Counter[tuple[Any, ...]]":
    """Every pushed row with the generation of the version on its results, by Arrow's own join."""
    stamped = {tuple(row) for row in zip(found["s_n"].to_pylist(), found["t_version"].to_pylist(), strict=True)}
    pushed = rows_of(RATE * SECONDS, KEYS)
    versions = dict(stamped)
    assert len(versions) == len(stamped) == pushed["n"].size, "every row is there, each with one version"
    of_row = np.array([versions[number] for number in range(pushed["n"].size)])
    assert (np.diff(of_row) >= 0).all(), "versions follow each other"
    joined: Counter[tuple[Any, ...]] = Counter()
    for version, generation in generations.items():
        rows = pa.table({"n": pushed["n"], "k": pushed["k"]}).filter(pa.array(of_row == version))
        table = table_of(generation).append_column("key", table_of(generation)["k"])
        both = rows.join(table, "k", join_type="left outer").select(["n", "k", "key", "value"])
        joined += as_rows(both.append_column("version", pa.array([version] * both.num_rows)))
    return joined


def as_rows(table: pa.Table) -> "Counter[tuple[Any, ...]]":
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


def leaves_nothing(user: User, query: str) -> None:
    user.kubectl("delete", "joinq", query, "--wait=true", timeout_s=120)
    chosen = ("get", WORKLOADS, "-l", f"joinery.dev/joinquery={query}", "-o", "name")
    user.until("nothing of it is left", lambda: not user.kubectl(*chosen).strip(), 60)


@pytest.mark.timeout(600)
def test_the_examples_with_a_stored_table_run_and_are_exact(sparked: User, disks: dict[str, Path]) -> None:
    """As they stand in the repository; their files lie where their READMEs say."""
    trades, keys = (ROOT / "examples" / name for name in ("06-trades-information", "07-surrogate-keys"))
    shutil.copytree(trades / "information", disks["tables"] / "information", dirs_exist_ok=True)
    files = {path.name: path.read_text() for path in (keys / "keys.json", keys / "updates.csv")}
    sparked.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "surrogate-keys"}, "data": files})
    for example in (trades, keys):
        began_s, name = time.monotonic(), example.name.partition("-")[2]
        volume(sparked, f"of-{name}", "ReadWriteOnce", is_claimed=False, is_default=True)
        sparked.kubectl("apply", "-f", str(example / "query.yaml"))
        sparked.until(f"{name} runs", lambda name=name: sparked.status(name).get("phase") in BEGUN, 180)  # type: ignore[misc]
        say(f"{name}: begun after {time.monotonic() - began_s:.0f} s")
        sparked.finished(name, 240)
        leaves_nothing(sparked, name)
        sparked.cluster.kubectl("delete", "pv", f"of-{name}")
    stored = pq.read_table(trades / "information" / "part-0.parquet")
    is_exact(trades, stored, pq.read_table(disks["results"] / "trades-information.parquet"))
    schema = JoinPlan.of(parsed(keys / "query.yaml")).schema
    options = csv.ConvertOptions(column_types=schema, strings_can_be_null=True, quoted_strings_can_be_null=False)
    found = csv.read_csv(disks["results"] / "surrogate-keys.csv", convert_options=options)
    is_exact(keys, json.read_json(keys / "keys.json"), found)


def is_exact(example: Path, table: pa.Table, found: pa.Table) -> None:
    """Every row of the stream, read again, with the table by the rules."""
    spec = parsed(example / "query.yaml")
    plan = JoinPlan.of(spec)
    reader = reader_of("spec.streams[0]", spec.streams[0], plan.formats[0], example, "")
    pieces = [piece.rows for piece in reader.read(None) if isinstance(piece, Piece)]
    rows = pa.Table.from_batches(pieces, plan.formats[0].schema)
    nothing = np.zeros(rows.num_rows, np.int64)
    stream = RecordedStream(rows, nothing, nothing.astype(np.bool_), nothing)
    (column,) = [name for name in found.column_names if name.endswith("_version")]
    (version,) = set(found[column].to_pylist())  # the table did not change
    schema = stored_schema(plan)
    right = pa.concat_tables(
        table_truth(plan, stream, [(-1, version)], {version: table.select(schema.names).cast(schema)})
    )
    compared = compare(found.select(plan.schema.names).cast(plan.schema), right, 5)
    assert right.num_rows > 0
    assert compared.exact, compared


# --- engine: spark


def sparks_query(name: str, **fields: Any) -> dict[str, Any]:
    streams = [
        {
            "name": one, "window": "5s", **COLUMNS,
            "source": {"file": {"path": f"{one}.parquet", "volume": {"claim": "tables"}}},
        }
        for one in ("a", "b")
    ]  # fmt: skip
    wanted = {
        "streams": streams,
        "engine": "spark",
        "sinks": [{"file": {"path": f"{name}.parquet", "volume": {"claim": "results"}}}],
        "pods": {"spark": {"cores": 2, "volume": {"storageClass": "work", "size": "1Gi"}}},
    }
    return join_query(name, **{**wanted, **fields})


def side(seed: int) -> dict[str, Any]:
    count = 60_000
    key = np.random.default_rng(seed).integers(0, 5000, count)
    return {"k": key, "n": np.arange(count), "ts": np.arange(count) * 1000}


@pytest.mark.timeout(600)
def test_a_query_that_spark_runs_is_exact_although_its_driver_is_killed(sparked: User, disks: dict[str, Path]) -> None:
    left, right = side(1), side(2)
    for name, rows in (("a", left), ("b", right)):
        pq.write_table(pa.table(rows), disks["tables"] / f"{name}.parquet")
    sparked.apply(sparks_query("whole"))
    sparked.until("it runs", lambda: sparked.status("whole").get("phase") == "Running", 180)
    kill(sparked, running(sparked, "whole", "driver")[0])
    sparked.finished("whole", 240)
    found = pq.read_table(disks["results"] / "whole.parquet")
    made = np.sort(pair(found["a_n"].to_numpy(), found["b_n"].to_numpy()))
    wanted = np.sort(pairs(left, right, 5_000_000, start_us=0))
    assert wanted.size > 0
    assert np.array_equal(wanted, made)
    status = sparked.status("whole")
    assert (wanted.size, 0, [60_000, 60_000]) == (
        status["results"], status["late"], [one["rows"] for one in status["streams"]],
    )  # fmt: skip
    assert sparked.events("whole", "Finished")
    leaves_nothing(sparked, "whole")


def test_what_spark_cannot_do_is_refused_by_name_and_a_table_needs_a_volume(sparked: User) -> None:
    sparked.apply(sparks_query("wrong", join={"on": ["k"], "type": "anti"}))
    sparked.until("it stalls", lambda: sparked.status("wrong").get("phase") == "Stalled", 60)
    assert any("spec.join.type" in one for one in sparked.events("wrong", "ValidationError"))
    sparked.kubectl("delete", "joinq", "wrong", "--wait=true", timeout_s=120)
    nowhere = hybrid_query()
    del nowhere["spec"]["streams"][1]["table"]["volume"]
    with pytest.raises(CommandFailed, match="in a cluster a table lies on a volume"):
        sparked.apply(nowhere)


def test_the_operator_with_spark_uses_every_right_that_it_has_and_no_other(sparked: User) -> None:
    """Last: all else that it may do was done above. A load whose query is not there makes it look for that."""
    spec = {"query": "none", "profile": {"constant": {"rate": 1}}, "duration": "1s"}
    sparked.apply({"apiVersion": "joinery.dev/v1alpha1", "kind": "LoadTest", "metadata": {"name": "no"}, "spec": spec})
    sparked.until("it waits", lambda: sparked.read("loadt", "no").get("status", {}).get("phase") == "Pending", 60)
    sparked.kubectl("delete", "loadt", "no")
    rights.check(sparked, "spark-joinery-operator")
