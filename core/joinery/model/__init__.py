"""The words of Joinery as types: specs, batches, ids, times, errors."""
