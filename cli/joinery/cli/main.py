"""All of `joinery`, for whoever wants to look at every command; the command itself begins in `entry`."""

from joinery.cli.commands import SENTENCES, made

app = made(SENTENCES)
