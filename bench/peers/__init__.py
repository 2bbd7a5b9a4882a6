"""`make bench-peers`: our service beside Flink, Spark and DataFusion, on the same rows, in the same run.

Rule 1: everybody takes turns, and only one of them has a process while it is timed: the Java engines want most of the
memory. A turn of an engine is a new process that first joins a small input; starting and warming up are not timed.
Rule 2: number and checksum of an engine's pairs must be those of the C program, and the number the one that was counted
when the input was made (`bench.inputs`). An engine that says anything else gets no figure.
Rule 3: all of them read the same rows, each from a file of the kind that it reads best (`forms`).
Rule 4: what was made once stays in `$JOINERY_PEERS` (`home`); the project itself stays clean.

`job` and the three `*_join` modules run under the engine's own Python and import nothing of ours but each other.
"""
