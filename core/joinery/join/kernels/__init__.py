"""Compiled inner loops of the joins: flat arrays in, flat arrays out."""
