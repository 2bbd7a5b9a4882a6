"""Generated from protos/joinery/v1 by protos/generate.py: change the protos, not this."""
