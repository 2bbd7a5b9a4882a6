"""`sql:` in a spec: it means what the same query means that is written out; what it cannot mean is shown in it."""

from typing import Any

import pytest

from joinery.model.errors import BadSpec
from joinery.model.quantities import CountWindow
from joinery.model.spec import JoinQuery, JoinQuerySpec

ORDERS = {"name": "orders", "schema": {"id": "int64", "cost": "float64", "day": "date", "ts": "int64"}}
SHIPS = {"name": "ships", "schema": {"id": "int64", "order_id": "int64", "Clerk No": "string", "ts": "int64"}}
BILLS = {"name": "bills", "schema": {"oid": "int64", "sum": "float64"}}


def spec_of(sql: str, *streams: dict[str, Any], **more: Any) -> JoinQuerySpec:
    return JoinQuerySpec.parse({"streams": list(streams or (ORDERS, SHIPS)), "sql": sql, **more})


def written(join: dict[str, Any], *streams: dict[str, Any], **more: Any) -> JoinQuerySpec:
    return JoinQuerySpec.parse({"streams": list(streams), "join": join, **more})


def complaint(sql: str, *streams: dict[str, Any], **more: Any) -> str:
    with pytest.raises(BadSpec) as caught:
        spec_of(sql, *streams, **more)
    return str(caught.value)


def test_equal_columns_are_the_key_and_the_rest_of_on_is_the_condition() -> None:
    found = spec_of(
        'SELECT o.id AS number, ships."Clerk No" FROM orders o JOIN ships ON o.id = ships.order_id AND cost > 10 '
        "AND (o.cost < 5 OR \"Clerk No\" LIKE 'x%') WITHIN 10 MINUTES"
    )
    where = "orders.cost > 10 and (orders.cost < 5 or ships.\"Clerk No\" like 'x%')"
    expected = written(
        {"on": [{"orders": "id", "ships": "order_id"}], "where": where},
        ORDERS | {"window": "10m"}, SHIPS | {"window": "10m"},
        select=["orders.id as number", 'ships."Clerk No" as "Clerk No"'],
    )  # fmt: skip
    assert expected.join.on == found.join.on
    assert (expected.streams, expected.select) == (found.streams, found.select)
    assert "(orders.cost > 10) and ((orders.cost < 5) or (ships.\"Clerk No\" like 'x%'))" == found.join.where


def test_where_filters_results_and_using_names_a_common_column() -> None:
    found = spec_of(
        "select * from orders left join ships using (id) within 1.5 hours "
        "where \"Clerk No\" is not null and orders.ts between 1 and 2 and day >= DATE '2024-01-31'"
    )
    assert ("left", "id") == (found.join.type, found.join.on[0].name)
    assert found.filter is not None
    assert "orders.day >= date '2024-01-31'" in found.filter
    assert found.select is None
    assert 5_400 * 10**9 == found.streams[0].window.length_ns  # type: ignore[union-attr]


def test_every_stream_has_the_window_of_its_join() -> None:
    found = spec_of(
        "SELECT * FROM orders o JOIN ships s ON o.id = s.order_id WITHIN 100 ROWS "
        "JOIN bills b ON s.order_id = b.oid WITHIN 5 s",
        BILLS, SHIPS, ORDERS,
    )  # fmt: skip
    assert ["orders", "ships", "bills"] == [stream.name for stream in found.streams]  # as the statement has them
    assert ["100 rows", "100 rows", "5s"] == [_window(stream.window) for stream in found.streams]
    assert (("bills", "oid"), ("orders", "id"), ("ships", "order_id")) == found.join.on[0].by_stream


def _window(window: Any) -> str:
    return f"{window.rows} rows" if isinstance(window, CountWindow) else f"{window.length_ns // 10**9}s"


def test_a_window_of_the_spec_stays_where_nothing_is_said_of_it() -> None:
    streams = (ORDERS | {"window": "1m"}, SHIPS | {"window": "2m"})
    found = spec_of("SELECT * FROM orders o SEMI JOIN ships s ON o.id = s.id", *streams)
    assert (60, 120) == tuple(stream.window.length_ns // 10**9 for stream in found.streams)  # type: ignore[union-attr]
    assert "one of them" in complaint("SELECT * FROM orders o JOIN ships s ON o.id = s.id WITHIN 1 s", *streams)


def test_a_word_in_quotes_is_no_keyword() -> None:
    found = spec_of("SELECT * FROM orders o JOIN ships s ON o.id = s.id AND \"Clerk No\" <> 'WITHIN 3 ROWS' WITHIN 1 s")
    assert "(ships.\"Clerk No\" <> 'WITHIN 3 ROWS')" == found.join.where


@pytest.mark.parametrize(
    ("sql", "said", "place"),
    [
        ("SELECT o.id, count(*) FROM orders o JOIN ships s ON o.id = s.id", "COUNT(*)", 13),
        ("SELECT o.cots FROM orders o JOIN ships s ON o.id = s.id", "write cost", 7),
        ("SELECT * FROM order o JOIN ships s ON o.id = s.id", "write orders", 14),
        ("SELECT * FROM orders o JOIN ships s ON o.id = s.id WITHIN ten", "WITHIN 10 MINUTES", 51),
        ("SELECT * FROM orders o JOIN ships s ON o.id = s.id GROUP BY cost", "GROUP BY", 60),
        ("SELECT * FROM orders o, ships s WHERE o.id = s.id", "JOIN without ON", 24),
        ("SELECT * FROM orders o JOIN ships s ON o.id > s.id", "no common key", 28),
        ("SELECT id FROM orders o JOIN ships s ON o.id = s.id", "several streams", 7),
        ("SELECT * FROM orders o JOIN ships s ON o.id = s.id AND sqrt(cost) > 1", "SQRT", 55),
        ("SELECT * FROM orders JOIN orders ON 1 = 1", "twice", 26),
        ("SELECT * FROM orders o JOIN ON x", "table name", 28),
        ("SELECT * FROM orders o JOIN ships s ON o.id = s.id WHERE cost IN (SELECT 1)", "IN", 57),
        ("DELETE FROM orders", "one SELECT", 0),
        ("", "0 statements", 0),
    ],
)
def test_what_a_spec_cannot_say_is_shown_in_the_text(sql: str, said: str, place: int) -> None:
    lines = complaint(sql).splitlines()
    assert said in lines[0]
    assert ["  " + sql, "  " + " " * place + "^"] == lines[1:]


def test_the_line_of_a_long_statement_is_shown() -> None:
    lines = complaint("SELECT *\nFROM orders o\nJOIN ships s ON o.id = s.oid\nWITHIN 1 s").splitlines()
    assert ["  JOIN ships s ON o.id = s.oid", "                         ^"] == lines[1:]


def test_sql_and_join_are_one_too_many() -> None:
    assert "join" in complaint("SELECT * FROM orders o JOIN ships s ON o.id = s.id", join={"on": ["id"]})


def test_an_outer_join_of_three_streams_is_refused() -> None:
    sql = "SELECT * FROM orders o JOIN ships s ON o.id = s.order_id LEFT JOIN bills b ON b.oid = o.id WITHIN 1 s"
    assert "outer kinds take two" in complaint(sql, ORDERS, SHIPS, BILLS)


def test_a_query_file_may_have_it_and_is_written_out_without() -> None:
    sql = "SELECT * FROM orders o JOIN ships s ON o.id = s.id WITHIN 1 s"
    head = {"apiVersion": "joinery.dev/v1alpha1", "kind": "JoinQuery", "metadata": {"name": "q"}}
    query = JoinQuery.parse(head | {"spec": {"streams": [ORDERS, SHIPS], "sql": sql}})
    again = JoinQuery.parse(query.to_dict())
    assert query == again
    assert "sql" not in query.to_dict()["spec"]
