"""A query file that can run here, or every complaint, before any process starts."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from joinery.adapters.sinks.opening import open_sinks
from joinery.adapters.sources.opening import reader_of
from joinery.cli.words import size
from joinery.join.plan import JoinPlan
from joinery.model.errors import BadSpec, Complaint, UserMustAct
from joinery.model.spec import JoinQuery, JoinQuerySpec
from joinery.model.yaml_text import WHOLE


def read_query(path: Path, text: str | None = None) -> JoinQuerySpec:
    """The spec of a query file that can run here: its inputs are there, and its outputs replace none of them.

    `text`: what somebody has read from the file; it is not read again.
    """
    spec = _query(path, text_of(path) if text is None else text).spec
    plan = JoinPlan.of(spec)
    complaints = [*_complain_of_sinks(spec, path.parent), *_complain_of_sources(spec, plan, path.parent)]
    if complaints:
        raise BadSpec(complaints)
    files = spec.model_copy(update={"sinks": tuple(sink for sink in spec.sinks if sink.redis_stream is None)})
    late = spec.late is not None and spec.late.sink.redis_stream is not None
    open_sinks(files.model_copy(update={"late": None}) if late else files, plan, path.parent)
    return spec


def parsed(path: Path) -> JoinQuerySpec:
    """The spec, checked."""
    return _query(path, text_of(path)).spec


def _query(path: Path, text: str) -> JoinQuery:
    """The query of a text; what is wrong with the text as a whole is told of its file."""
    try:
        return JoinQuery.parse_yaml(text)
    except BadSpec as bad:
        raise BadSpec(
            [replace(one, field=str(path)) if one.field == WHOLE else one for one in bad.complaints]
        ) from None


def text_of(path: Path) -> str:
    """What a query file says now."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UserMustAct(f"{path}: found {error.strerror}, wanted a query file; check the path") from error
    except UnicodeDecodeError as error:
        found, wanted = f"no UTF-8 at byte {error.start}", "a query file; check the path, or save the file as UTF-8"
        raise UserMustAct(f"{path}: found {found}, wanted {wanted}") from error


def outputs(spec: JoinQuerySpec, folder: Path) -> list[Path]:
    """The files that the query writes, late rows included."""
    found = [folder / sink.file.path for sink in spec.sinks if sink.file is not None]
    return found + [path for _, path in late_outputs(spec, folder)]


def late_outputs(spec: JoinQuerySpec, folder: Path) -> list[tuple[str, Path]]:
    """Where the late rows of each stream are written; none: they are only counted."""
    if spec.late is None or spec.late.sink.file is None:
        return []
    path = folder / spec.late.sink.file.path
    return [(stream.name, path.with_name(f"{path.stem}-{stream.name}{path.suffix}")) for stream in spec.streams]


def check_places(spec: JoinQuerySpec, folder: Path) -> None:
    """Every file can be written where it shall be, found out by making something there: before the first row comes."""
    files = [(f"spec.sinks[{place}].file.path", one.file) for place, one in enumerate(spec.sinks)]
    files += [("spec.late.sink.file.path", spec.late.sink.file)] if spec.late is not None else []
    wrong = []
    for field, file in files:
        if file is not None and (why := _not_writable((folder / file.path).parent)) is not None:
            remedy = "name another place, or change who may write there"
            wrong.append(Complaint(field, f"{file.path}, for which {why}", "a place to write", remedy))
    if wrong:
        raise BadSpec(wrong)


def _not_writable(folder: Path) -> str | None:
    """Why nothing can be made in a folder, or in the first above it that is there; None: it can."""
    there = next(one for one in (folder, *folder.resolve().parents) if one.exists())
    if not there.is_dir():
        return f"{there} is no folder"
    try:
        with TemporaryDirectory(prefix=".joinery-", dir=there):
            return None
    except OSError as error:
        return f"nothing can be made in {there} ({error.strerror})"


def replaced(spec: JoinQuerySpec, folder: Path) -> list[str]:
    """What is there already and will be replaced, as people read it."""
    there = [path for path in outputs(spec, folder) if path.is_file()]
    return [f"{path} ({size(path.stat().st_size)})" for path in there]


def _complain_of_sinks(spec: JoinQuerySpec, folder: Path) -> list[Complaint]:
    """A sink must not replace what a source reads."""
    read = {(folder / s.source.file.path).resolve() for s in spec.streams if s.source and s.source.file}
    wrong = []
    for place, sink in enumerate(spec.sinks):
        if sink.file is not None and (folder / sink.file.path).resolve() in read:
            field = f"spec.sinks[{place}].file.path"
            wrong.append(Complaint(field, f"{sink.file.path}, a source", "another file", "choose a new name"))
    for _, path in late_outputs(spec, folder):
        if path.resolve() in read:
            found = f"{path}, a source"
            wrong.append(Complaint("spec.late.sink.file.path", found, "another file", "choose a new name"))
    return wrong


def _complain_of_sources(spec: JoinQuerySpec, plan: JoinPlan, folder: Path) -> list[Complaint]:
    """Every file is there, and has the columns of its stream."""
    wrong: list[Complaint] = []
    for place, (stream, form) in enumerate(zip(spec.streams, plan.formats, strict=True)):
        if stream.source is None:
            continue
        field = f"spec.streams[{place}]"
        try:
            reader = reader_of(field, stream, form, folder, "")
            if stream.source.redis_stream is None:  # there is no Redis yet
                reader.check()
        except BadSpec as bad:
            wrong += bad.complaints
        except UserMustAct as bad:
            raise UserMustAct(f"{field}.source: {bad}") from bad
    return wrong


def name_of(text: str) -> str:
    """The name that a query gives itself."""
    return JoinQuery.parse_yaml(text).metadata.name
