"""The Kubernetes operator: JoinQuery objects in, the pods of each query out (docs/design.md §5, §6)."""
