"""The join of a stream with a stored relation that is larger than memory: thesis chapter 6 (docs/hybrid.md).

`segments` cuts the relation, `policy` decides what waits, what is read and what stays in memory, `hybrid` moves the
rows, `meshjoin` and `indexed_nested_loop` are what it is compared with, `replay` charges all of them under a virtual
clock.
"""
