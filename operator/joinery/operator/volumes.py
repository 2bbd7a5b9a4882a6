"""Files of a query in a cluster: each lies on a volume, which is mounted into gateway (sources) and collector (sinks);
that of a stored table, into the pods of its Spark.

A path in a query is relative to its volume; in the pods it becomes /volumes/<kind>-<name>/<path>.
"""

from typing import Any, Final

from joinery.model.spec import JoinQuery
from joinery.model.spec_pods import VolumeSpec
from joinery.model.spec_sections import FileSpec, SinkSpec, StreamSpec
from joinery.model.spec_table import TableSpec

ROOT: Final = "/volumes"


def placed(query: JoinQuery) -> JoinQuery:
    """The same query with its files where the pods find them."""
    spec = query.spec
    late = spec.late and spec.late.model_copy(update={"sink": _sink(spec.late.sink)})
    changed = {
        "streams": tuple(_stream(stream) for stream in spec.streams),
        "sinks": tuple(_sink(sink) for sink in spec.sinks),
        "late": late,
    }
    return query.model_copy(update={"spec": spec.model_copy(update=changed)})


def _stream(stream: StreamSpec) -> StreamSpec:
    source, table = stream.source, stream.table
    if table is not None and table.volume is not None:
        moved = table.model_copy(update={"path": path_of(table, table.volume)})
        return stream.model_copy(update={"table": moved})
    if source is None or source.file is None:
        return stream
    return stream.model_copy(update={"source": source.model_copy(update={"file": _file(source.file)})})


def _sink(sink: SinkSpec) -> SinkSpec:
    return sink if sink.file is None else sink.model_copy(update={"file": _file(sink.file)})


def _file(file: FileSpec) -> FileSpec:
    if file.volume is None:
        return file
    return file.model_copy(update={"path": path_of(file, file.volume)})


def path_of(held: FileSpec | TableSpec, volume: VolumeSpec) -> str:
    """Where pods find it."""
    return f"{ROOT}/{name_of(volume)}/{held.path.lstrip('/')}"


def name_of(volume: VolumeSpec) -> str:
    """The name of a volume within a pod."""
    return f"claim-{volume.claim}" if volume.claim is not None else f"map-{volume.config_map}"


def files_of(query: JoinQuery) -> list[FileSpec]:
    """Every file of a query."""
    spec = query.spec
    sources = [stream.source.file for stream in spec.streams if stream.source is not None]
    sinks = [sink.file for sink in (*spec.sinks, *([spec.late.sink] if spec.late is not None else ()))]
    return [file for file in (*sources, *sinks) if file is not None]


def mounts_of(query: JoinQuery) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The volumes of a pod, and where they are mounted."""
    chosen = {name_of(file.volume): file.volume for file in files_of(query) if file.volume is not None}
    volumes = [{"name": name, **source_of(volume)} for name, volume in sorted(chosen.items())]
    return volumes, [{"name": name, "mountPath": f"{ROOT}/{name}"} for name in sorted(chosen)]


def source_of(volume: VolumeSpec) -> dict[str, Any]:
    """What a pod's volume is made of."""
    if volume.claim is not None:
        return {"persistentVolumeClaim": {"claimName": volume.claim}}
    return {"configMap": {"name": volume.config_map}}
