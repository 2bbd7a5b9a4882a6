"""A query in SQL: what a SELECT with JOINs means as `join`, `select`, `filter` and windows of a spec.

    SELECT o.order_id AS id, f.clerk_id
    FROM orders o
    [INNER | LEFT | RIGHT | FULL | SEMI | ANTI] JOIN fulfilments f ON o.order_id = f.order_id AND o.cost > 10
      WITHIN 10 MINUTES
    WHERE f.clerk_id IS NOT NULL

Rule 1: equalities that name a column of every stream are the key (`join.on`); the rest of ON is `join.where`.
Rule 2: WHERE is `filter`, on result rows; SELECT is `select`, and * leaves it out. SELECT takes columns only.
Rule 3: WITHIN is no SQL, but ours: the window of the stream that it joins, and the first one also of the stream after
FROM. A number of ROWS is a count window. Where the spec has a window for a stream, WITHIN is left out for it.
Rule 4: what cannot be said in a spec (GROUP BY, subqueries, ...) is refused, with its place in the text.

The grammar is sqlglot's; `sql_terms` writes conditions in our expression language, which checks them again.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from joinery.model.complaints import BadValue, nearest, show
from joinery.model.errors import BadExpression
from joinery.model.sql_terms import MAX_SQL, Names, place_of, term

_UNITS: Final = {
    "nanosecond": "ns", "microsecond": "us", "millisecond": "ms", "second": "s", "minute": "m", "hour": "h",
    "ns": "ns", "us": "us", "ms": "ms", "sec": "s", "min": "m", "s": "s", "m": "m", "h": "h",
}  # fmt: skip
_WITHIN: Final = re.compile(r"\bWITHIN\s+([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]+)", re.IGNORECASE)
_ANY_WITHIN: Final = re.compile(r"\bWITHIN\b", re.IGNORECASE)
_QUOTED: Final = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"")
_ALLOWED: Final = {"kind", "expressions", "from_", "joins", "where", "hint", "distinct", "limit"}


@dataclass(frozen=True, slots=True)
class Window:
    """One WITHIN: where it stands, and what a spec would say."""

    at: int
    value: object


@dataclass(slots=True)
class Statement:
    """What a SELECT says, in the words of a spec."""

    streams: list[str]
    """In their order."""
    windows: dict[str, object]
    join: dict[str, Any]
    select: list[str] | None
    filter: str | None


@dataclass(slots=True)
class _Reader:
    """One text on its way to a `Statement`."""

    text: str
    columns: Mapping[str, list[str]]
    """The columns of every stream that the spec has."""
    names: Names = field(init=False)

    def bad(self, at: int, found: str, wanted: str, remedy: str) -> BadExpression:
        return BadExpression(self.text, at, found, wanted, remedy)

    def read(self) -> Statement:
        windows = list(self._windows())
        select = self._parsed()
        tables = [select.args["from_"].this, *(join.this for join in select.args.get("joins") or ())]
        self.names = self._names(tables)
        streams = [self.names.stream_of(table.alias_or_name) for table in tables]
        joins: list[exp.Join] = select.args["joins"]
        conditions = [one for join in joins for one in self._conditions(join)]
        on, rest = self._keys(streams, conditions, joins[0])
        kind = self._kind(joins)
        made = {"on": on, "type": kind, **({"where": " and ".join(rest)} if rest else {})}
        where = select.args.get("where")
        return Statement(
            streams, self._placed(windows, joins, streams), made, self._select(select),
            term(where.this, self.names) if where is not None else None,
        )  # fmt: skip

    # --- the text

    def _windows(self) -> Iterator[Window]:
        for found in _ANY_WITHIN.finditer(_hidden(self.text)):
            match = _WITHIN.match(self.text, found.start())
            unit = match[2].lower() if match else ""
            name = _UNITS.get(unit) or _UNITS.get(unit.removesuffix("s"))
            if match and unit in ("row", "rows") and match[1].isdigit():
                yield Window(found.start(), {"count": int(match[1])})
            elif match and name:
                yield Window(found.start(), f"{match[1]}{name}")
            else:
                said = self.text[found.start() : found.start() + 30]
                remedy = "write WITHIN 10 MINUTES, or WITHIN 100 ROWS"
                raise self.bad(found.start(), said, "WITHIN and a length", remedy)

    def _parsed(self) -> exp.Select:
        plain = plain_text(self.text)
        try:
            trees = [tree for tree in sqlglot.parse(plain) if tree is not None]
        except ParseError as error:
            told = error.errors[0]
            lines = plain.splitlines(keepends=True)[: told["line"] - 1]
            at = sum(map(len, lines)) + max(0, told["col"] - len(told["highlight"] or " "))
            found = str(told["description"]).split(" but got")[0].split(" <Token")[0].rstrip(".")
            raise self.bad(at, found, "a SELECT with JOINs", "see docs/sql.md") from None
        except TokenError:
            raise self.bad(0, "a quote that is never closed", "a SELECT with JOINs", "close it") from None
        if len(trees) != 1 or not isinstance(trees[0], exp.Select):
            found = f"{len(trees)} statements" if len(trees) != 1 else show(self.text.split()[0])
            raise self.bad(0, found, "one SELECT", "write SELECT ... FROM a JOIN b ON ...")
        return self._supported(trees[0])

    def _supported(self, select: exp.Select) -> exp.Select:
        for name, part in select.args.items():
            held = part[0] if isinstance(part, list) and part else part
            if held and (name not in _ALLOWED or name in ("kind", "hint", "distinct", "limit")):
                clause = {"with_": "WITH", "group": "GROUP BY", "order": "ORDER BY"}.get(name, name.upper())
                at = place_of(held) if isinstance(held, exp.Expr) else 0
                raise self.bad(at, clause, "SELECT, FROM, JOIN and WHERE only", f"leave {clause} out")
        if select.args.get("from_") is None or not select.args.get("joins"):
            raise self.bad(0, "a SELECT without a JOIN", "a join of two or more streams", "write FROM a JOIN b ON ...")
        return select

    # --- the streams

    def _names(self, tables: list[exp.Expr]) -> Names:
        aliases: dict[str, str] = {}
        for table in tables:
            at = place_of(table)
            if not isinstance(table, exp.Table) or table.args.get("db"):
                raise self.bad(
                    at, "a subquery" if isinstance(table, exp.Subquery) else table.sql(), "a stream", "name it"
                )
            known = list(self.columns)
            if table.name not in known:
                remedy = f"write {near}" if (near := nearest(table.name, known)) else f"streams are {', '.join(known)}"
                raise self.bad(at, f"the stream {table.name}", "one that the query has", remedy)
            if table.alias_or_name in aliases or table.name in aliases.values():
                raise self.bad(at, f"{table.alias_or_name} twice", "each stream once", "join a stream with another one")
            aliases[table.alias_or_name] = table.name
        return Names(self.text, aliases, self.columns)

    def _placed(self, windows: list[Window], joins: list[exp.Join], streams: list[str]) -> dict[str, object]:
        """Which stream each WITHIN belongs to: the one of the last JOIN before it."""
        starts = [place_of(join.this) for join in joins]
        made: dict[str, object] = {}
        for window in windows:
            before = [place for place, start in enumerate(starts) if start < window.at]
            if not before:
                raise self.bad(window.at, "WITHIN before any JOIN", "it behind ON", "write JOIN b ON ... WITHIN 1 HOUR")
            stream = streams[before[-1] + 1]
            if stream in made:
                raise self.bad(window.at, "a second WITHIN", "one for each JOIN", "leave one of them out")
            made[stream] = window.value
            if before[-1] == 0:
                made[streams[0]] = window.value
        return made

    # --- the join

    def _kind(self, joins: list[exp.Join]) -> str:
        kinds = []
        for join in joins:
            word = (join.side or join.kind or "inner").lower()
            word = join.kind.lower() if join.kind in ("SEMI", "ANTI") else word
            if word not in ("inner", "left", "right", "full", "semi", "anti") or join.method:
                at = place_of(join.this)
                raise self.bad(
                    at, f"{join.method or word.upper()} JOIN", "INNER, LEFT, RIGHT, FULL, SEMI or ANTI", "say ON"
                )
            kinds.append(word)
        if len(joins) > 1 and set(kinds) != {"inner"}:
            wrong = next(place for place, kind in enumerate(kinds) if kind != "inner")
            at = place_of(joins[wrong].this)
            raise self.bad(
                at, f"{kinds[wrong].upper()} JOIN of {len(joins) + 1} streams", "INNER JOIN", "outer kinds take two"
            )
        return kinds[0]

    def _conditions(self, join: exp.Join) -> Iterator[exp.Expr]:
        if using := join.args.get("using"):
            for column in using:
                yield exp.Tuple(expressions=[column])
        elif (on := join.args.get("on")) is not None:
            yield from on.flatten() if isinstance(on, exp.And) else (on,)
        else:
            at = place_of(join.this)
            raise self.bad(at, "a JOIN without ON", "a condition", "write ON a.id = b.id, or USING (id)")

    def _keys(self, streams: list[str], conditions: list[exp.Expr], first: exp.Join) -> tuple[list[object], list[str]]:
        """Classes of equal columns that have one of each stream are key parts; all else is `where`."""
        classes: list[dict[str, str]] = []
        equalities: list[tuple[exp.Expr, dict[str, str]]] = []
        rest: list[str] = []
        for condition in conditions:
            plain = condition.unnest()
            if isinstance(plain, exp.Tuple):
                self._join_class(classes, dict.fromkeys(streams, plain.expressions[0].name))
                continue
            pair = self._equal_columns(plain)
            if pair is None:
                rest.append(f"({term(condition, self.names)})")
                continue
            equalities.append((condition, pair))
            self._join_class(classes, pair)
        whole = [one for one in classes if one.keys() == set(streams)]
        if not whole:
            at = place_of(first.this)
            wanted = (
                "an equality of one column of each stream" if len(streams) == 2 else "one key that all streams share"
            )
            raise self.bad(at, "no common key in ON", wanted, "write ON a.id = b.id")
        for condition, pair in equalities:
            if not any(pair.items() <= one.items() for one in whole):
                rest.append(f"({term(condition, self.names)})")
        return [self._part(one) for one in whole], rest

    def _equal_columns(self, node: exp.Expr) -> dict[str, str] | None:
        if not isinstance(node, exp.EQ):
            return None
        found = [self.names.column(side) for side in (node.left, node.right) if isinstance(side, exp.Column)]
        return dict(found) if len({stream for stream, _ in found}) == 2 else None

    @staticmethod
    def _join_class(classes: list[dict[str, str]], pair: dict[str, str]) -> None:
        """Put an equality to the class that shares one of its columns; a stream has one column in a class."""
        for one in classes:
            shared = one.items() & pair.items()
            if shared and all(one.get(stream, column) == column for stream, column in pair.items()):
                one.update(pair)
                return
        classes.append(dict(pair))

    @staticmethod
    def _part(one: dict[str, str]) -> object:
        names = set(one.values())
        return names.pop() if len(names) == 1 else one

    def _select(self, select: exp.Select) -> list[str] | None:
        items = select.expressions
        if len(items) == 1 and isinstance(items[0], exp.Star):
            return None
        made = []
        for item in items:
            column = item.this if isinstance(item, exp.Alias) else item
            if not isinstance(column, exp.Column) or isinstance(column.this, exp.Star):
                found = "* beside columns" if isinstance(column, exp.Star) else item.sql()
                raise self.bad(place_of(item), found, "a column", "write stream.column AS name, or * alone")
            made.append(f"{self.names.text_of(column)} as {self.names.quoted(item.alias_or_name)}")
        return made


def _hidden(text: str) -> str:
    """The text with nothing readable in its quotes."""
    return _QUOTED.sub(lambda quoted: "x" * len(quoted[0]), text)


def plain_text(text: str) -> str:
    """The text without its WITHINs; they leave spaces, so that places stay."""
    hidden, plain = _hidden(text), text
    for match in _WITHIN.finditer(hidden):
        plain = plain[: match.start()] + " " * (match.end() - match.start()) + plain[match.end() :]
    return plain


def read_sql(text: str, columns: Mapping[str, list[str]]) -> Statement:
    """The statement of a text about streams with these columns; `BadExpression` with the place."""
    if len(text) > MAX_SQL:
        raise BadExpression(text[:60], 0, f"{len(text)} characters", f"at most {MAX_SQL}", "is this a statement?")
    return _Reader(text, columns).read()


def expanded(spec: Mapping[str, Any]) -> dict[str, Any]:
    """A spec with `sql`, as one without it; `BadValue` or `BadExpression` if they do not fit."""
    text, both = spec["sql"], [name for name in ("join", "filter", "select") if name in spec]
    if not isinstance(text, str):
        raise BadValue(
            show(text), "a SELECT in quotes", 'write sql: "SELECT * FROM a JOIN b ON a.id = b.id WITHIN 1 HOUR"'
        )
    if both:
        raise BadValue(f"sql and {', '.join(both)}", "one of them", f"leave {', '.join(both)} out: sql says it")
    streams = [dict(one) for one in spec.get("streams", ()) if isinstance(one, Mapping)]
    columns = {one.get("name"): list(one["schema"]) for one in streams if isinstance(one.get("schema"), Mapping)}
    said = read_sql(text, {name: held for name, held in columns.items() if isinstance(name, str)})
    for one in streams:
        if one.get("name") in said.windows:
            if "window" in one:
                raise BadValue(f"WITHIN and a window of {one['name']}", "one of them", "leave the window out")
            one["window"] = said.windows[one["name"]]
    streams.sort(key=lambda one: said.streams.index(one["name"]) if one.get("name") in said.streams else len(streams))
    made = {name: value for name, value in spec.items() if name != "sql"} | {"streams": streams, "join": said.join}
    if len(said.streams) < len(streams):
        extra = [str(one.get("name")) for one in streams if one.get("name") not in said.streams]
        raise BadValue(f"no {', '.join(extra)} in the statement", "every stream joined", "leave the stream out")
    if said.select is not None:
        made["select"] = said.select
    return made | ({"filter": said.filter} if said.filter is not None else {})
