"""The service under a virtual clock: the whole protocol with faults, and its load with a cost model."""
