"""Which rows belong together: keys, hashes, partition-groups, mini-groups."""
