"""A worker: owns partition-groups, keeps their windows, joins."""
