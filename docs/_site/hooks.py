"""What the site adds to the pages of docs/: the README as its first page, and references made from the schemas.

Links to files of the repository that are no pages become their paths, in code; a link to a page that is not there is an
error (`mkdocs build --strict`).
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

from joinery.model.spec import JoinQuerySpec
from joinery.model.spec_change import WAYS, Way
from joinery.model.types import PLAIN

ROOT: Final = Path(__file__).parents[2]
_LINK: Final = re.compile(r"\[([^\]]*)\]\((?!https?:|#|mailto:)([^)#]+)(#[^)]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Also the pages that are made."""
    made = {
        "index.md": _home(),
        "reference/joinquery.md": "".join(_query_reference()),
        "reference/chart.md": "".join(_chart_reference()),
        "reference/examples.md": "".join(_examples()),
        "changelog.md": (ROOT / "CHANGELOG.md").read_text(),
        "contributing.md": _home("CONTRIBUTING.md"),
    }
    for path, text in made.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links within a page, as the site has them."""
    return _relinked(markdown, Path(page.file.src_uri).parent)


_ELSEWHERE: Final = re.compile(
    rb'<(?:script|img|iframe)[^>]+src="?https?:|<link[^>]+rel="?(?:stylesheet|preload)[^>]+href="?https?:'
)


def on_post_build(config: MkDocsConfig) -> None:
    """The site needs nothing from elsewhere."""
    pages = Path(config.site_dir).rglob("*.html")
    if found := [str(page) for page in pages if _ELSEWHERE.search(page.read_bytes())]:
        raise PluginError(f"found scripts, styles or pictures from elsewhere in {found[0]}, wanted none")


def _relinked(text: str, folder: Path, to: Path | None = None) -> str:
    """Links of a text that lies in `folder` (seen from docs/), as a page in the same folder, or in `to`, has them."""
    docs = ROOT / "docs"

    def link(match: re.Match[str]) -> str:
        told, target, anchor = match[1], match[2], match[3] or ""
        path = (docs / folder / target).resolve()
        if path.is_relative_to(docs) and path.exists() and to is not None:
            target = Path("../" * len(to.parts)) / path.relative_to(docs)
            return f"[{told}]({target}{anchor})"
        if path.is_relative_to(docs) or not path.exists():
            return match[0] if path.suffix else f"`{target}`" if path.is_dir() else f"[{told}]({target}{anchor})"
        return f"`{path.relative_to(ROOT)}`"

    return _LINK.sub(link, text)


def _home(page: str = "README.md") -> str:
    """A page of the root, whose links begin there."""

    def link(match: re.Match[str]) -> str:
        if match[2] == "CONTRIBUTING.md":
            return f"[{match[1]}](contributing.md)"
        if match[2] == "examples/":
            return f"[{match[1]}](reference/examples.md)"
        if match[2].startswith("docs/") and match[2].endswith((".md", ".png", ".svg")):
            return f"[{match[1]}]({match[2].removeprefix('docs/')}{match[3] or ''})"
        return f"`{match[2]}`"

    return _LINK.sub(link, (ROOT / page).read_text())


# --- references


_PARAMETRIC: Final = ("binary(16)", "timestamp(us)", "timestamp(us, UTC)", "decimal(10, 2)")
_CHANGES: Final = {
    Way.LOGGED: "live, exact",
    Way.AT_ONCE: "live",
    Way.RESTART: "restart",
    Way.NEW_QUERY: "refused",
}
"""How a change of a running query's field takes effect, as the reference says it."""


_ABOUT_QUERIES: Final = """# JoinQuery

Every field of `spec`, from the models that check it. Errors name the field, what was found, what is wanted, and the
remedy.

Change of a running query: **live, exact**: an entry of the log, rows recorded after it are joined by it; **live**: at
once, it cannot change a result; **restart**: read when a process starts (a cluster rolls the pods, on one machine stop
and start the run); **refused**: make a new query. `worker.resources` and `pods` roll the pods that they are about.
More: [What survives what](../durability.md).

"""
_HEAD: Final = "| field | values | default | change | what it is |\n|---|---|---|---|---|\n"
_SQL: Final = "A SELECT that stands for `join`, `filter`, `select` and the windows: [SQL](../sql.md)."


def _query_reference() -> Iterator[str]:
    yield _ABOUT_QUERIES + _HEAD
    rows = fields()
    tops = [name for name, *_ in rows if "." not in name]
    yield from (_row(name, *rest) for name, *rest in rows if name in tops)
    yield f"| <code>sql</code> | text | | refused | {_SQL} |\n"
    for top in tops:
        if inner := [(name, *rest) for name, *rest in rows if name.startswith(f"{top}.")]:
            yield f"\n## {top}\n\n" + _HEAD + "".join(_row(*one, within=top) for one in inner)
    yield "\n## Types of columns\n\n" + ", ".join(f"`{name}`" for name in (*PLAIN, *_PARAMETRIC)) + ".\n"


def _row(name: str, values: str, default: str, about: str, within: str = "") -> str:
    """A line of the table; a long name may be broken after its dots."""
    shown = name.removeprefix(f"{within}.").replace(".", ".<wbr>")
    return f"| <code>{shown}</code> | {values} | {default} | {change_of(name)} | {about} |\n"


def fields() -> list[tuple[str, str, str, str]]:
    """Path, values, default and description of every field of `spec`."""
    schema = JoinQuerySpec.model_json_schema(by_alias=True)
    return [*_fields(schema, schema["$defs"], "")]


def change_of(field: str) -> str:
    """How a change of the field takes effect; of a section: all the ways of its fields."""
    path = field.removesuffix("[]") if field != "streams[]" else "streams"
    ways = [way for name, way in WAYS.items() if path == name or path.startswith((f"{name}.", f"{name}["))]
    ways = ways or [way for name, way in WAYS.items() if name.startswith((f"{path}.", f"{path}["))]
    return " or ".join(dict.fromkeys(_CHANGES[way] for way in ways))


def _fields(schema: dict[str, Any], known: dict[str, Any], prefix: str) -> Iterator[tuple[str, str, str, str]]:
    needed = schema.get("required", ())
    for name, held in schema.get("properties", {}).items():
        path = f"{prefix}{name}"
        default = "**needed**" if name in needed else _shown(held.get("default"))
        inner, ending = _section(held, known)
        about = " ".join(str(held.get("description") or (inner or {}).get("description", "")).split())
        values = "" if inner is not None else ", ".join(dict.fromkeys(_values(held, known)))
        yield path + ending, values, default, about.replace("|", "\\|")
        if inner is not None:
            yield from _fields(inner, known, f"{path}{ending}.")


_BOUNDS: Final = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}


def _values(held: dict[str, Any], known: dict[str, Any]) -> Iterator[str]:
    """What a field may hold, in a word or in all its words."""
    if "$ref" in held:
        yield from _values(known[held["$ref"].rpartition("/")[2]], known)
    elif "enum" in held:
        yield from (f"`{one}`" for one in held["enum"])
    elif "const" in held:
        yield f"`{held['const']}`"
    elif several := [*held.get("anyOf", ()), *held.get("oneOf", ()), *held.get("allOf", ())]:
        for one in several:
            yield from _values(one, known)
    elif held.get("type") not in (None, "null"):
        words = {"string": "text", "object": "mapping", "array": "list"}
        text = "duration" if "|ms|" in held.get("pattern", "") else words.get(held["type"], held["type"])
        bounds = [
            f"{sign} {held[name]:g}" for name, sign in _BOUNDS.items() if isinstance(held.get(name), (int, float))
        ]
        yield " ".join([text, *bounds])


def _section(held: dict[str, Any], known: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """The section that a field holds, if it does, or that its entries are."""
    for one in (held, *held.get("anyOf", ()), *held.get("allOf", ())):
        if "$ref" in one:
            found = known[one["$ref"].rpartition("/")[2]]
            return (found, "") if "properties" in found else (None, "")
        if one.get("type") == "array" and "$ref" in (one.get("items") or {}):
            found = known[one["items"]["$ref"].rpartition("/")[2]]
            return (found, "[]") if "properties" in found else (None, "[]")
    return None, ""


def _shown(default: Any) -> str:
    if default is None:
        return ""
    return "" if isinstance(default, (dict, list)) else f"`{json.dumps(default)}`"


def _chart_reference() -> Iterator[str]:
    values = ROOT / "charts/joinery/values.yaml"
    yield "# Chart values\n\n`charts/joinery/values.yaml`, as it is; "
    yield "`values.schema.json` beside it refuses what does not fit.\n\n"
    yield f"```yaml\n{values.read_text()}```\n\nPresets: "
    yield ", ".join(f"`helm/{path.name}`" for path in sorted((ROOT / "helm").glob("*.yaml"))) + ".\n"


def _examples() -> Iterator[str]:
    yield "# Tutorials\n\nOne for each example: what it shows, what it prints, what to try next. "
    yield "Begin with the quickstart.\n\n"
    folders = [folder for folder in sorted((ROOT / "examples").iterdir()) if (folder / "query.yaml").is_file()]
    for folder in sorted(folders, key=lambda one: one.name != "quickstart"):
        query, about = folder / "query.yaml", (folder / "README.md").read_text()
        title = about.partition("\n")[0].removeprefix("# ")
        text = _relinked(about.partition("\n")[2].strip(), Path("..") / folder.relative_to(ROOT), Path("reference"))
        yield f"## {title}\n\n{text}\n\n`{query.relative_to(ROOT)}`:\n\n```yaml\n{query.read_text()}```\n\n"
