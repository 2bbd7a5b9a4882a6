"""`make bench`: the core beside a C program, on the same rows, in the same run.

Rule 1: absolute figures move by tens of percent between machines and between runs, so what counts is a ratio of two
things that were measured in turns (`bench.measure`), each by the median of its runs.
Rule 2: before anything is timed its result is checked: number and checksum of the pairs, against the C program and,
the number, against a third count that shares no code with either (`bench.inputs`).
Rule 3: input is in memory before a clock starts, on both sides. One thread each.

The C program's memory is allocated and touched before its clock starts; the core's windows grow while its clock runs.
"""
