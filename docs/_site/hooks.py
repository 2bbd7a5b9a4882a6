"""What the site adds to the pages of docs/: the README as its first page, and references made from the schemas.

Links to files of the repository that are no pages become their paths, in code; a link to a page that is not there is an
error (`mkdocs build --strict`).
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from joinery.model.spec import JoinQuerySpec

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
    }
    for path, text in made.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links within a page, as the site has them."""
    return _relinked(markdown, Path(page.file.src_uri).parent)


def _relinked(text: str, folder: Path) -> str:
    docs = ROOT / "docs"

    def link(match: re.Match[str]) -> str:
        told, target, anchor = match[1], match[2], match[3] or ""
        path = (docs / folder / target).resolve()
        if path.is_relative_to(docs) or not path.exists():
            return match[0] if path.suffix else f"`{target}`" if path.is_dir() else f"[{told}]({target}{anchor})"
        return f"`{path.relative_to(ROOT)}`"

    return _LINK.sub(link, text)


def _home() -> str:
    """The README, whose links begin at the root."""

    def link(match: re.Match[str]) -> str:
        if match[2].startswith("docs/") and match[2].endswith((".md", ".png")):
            return f"[{match[1]}]({match[2].removeprefix('docs/')}{match[3] or ''})"
        return f"`{match[2]}`"

    return _LINK.sub(link, (ROOT / "README.md").read_text())


# --- references


def _query_reference() -> Iterator[str]:
    schema = JoinQuerySpec.model_json_schema(by_alias=True)
    yield "# JoinQuery\n\nEvery field of `spec`, from the models that check it. "
    yield "Errors name the field, what was found, what is wanted, and the remedy.\n\n"
    yield "| field | default | what it is |\n|---|---|---|\n"
    for field, default, about in _fields(schema, schema["$defs"], ""):
        yield f"| `{field}` | {default} | {about} |\n"
    yield "\n`sql` may stand for `join`, `filter`, `select` and the windows: see [SQL](../sql.md).\n"


def _fields(schema: dict[str, Any], known: dict[str, Any], prefix: str) -> Iterator[tuple[str, str, str]]:
    """Path, default and description of every field below a schema."""
    needed = schema.get("required", ())
    for name, held in schema.get("properties", {}).items():
        path = f"{prefix}{name}"
        default = "**needed**" if name in needed else _shown(held.get("default"))
        inner, ending = _section(held, known)
        about = " ".join(str(held.get("description") or (inner or {}).get("description", "")).split())
        yield path + ending, default, about.replace("|", "\\|")
        if inner is not None:
            yield from _fields(inner, known, f"{path}{ending}.")


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
    yield "# Examples\n\n"
    for folder in sorted((ROOT / "examples").iterdir()):
        query = folder / "query.yaml"
        if query.is_file():
            name = yaml.safe_load(query.read_text())["metadata"]["name"]
            about = (folder / "README.md").read_text() if (folder / "README.md").is_file() else ""
            yield f"## {name}\n\n{re.sub(r'^# .*$', '', about, count=1, flags=re.MULTILINE).strip()}\n\n"
            yield f"`{query.relative_to(ROOT)}`:\n\n```yaml\n{query.read_text()}```\n\n"
