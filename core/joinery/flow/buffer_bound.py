"""The buffer bound of sub-group communication: how many not yet sent rows the gateway holds at most.

Source: seed 000, V.B (thesis 7.5.2). Rows come at rate r and spread evenly. Just before a sub-group is served its own
r/n_g share has waited t_d, the share of the next one t_d - t_d/n_g, and so on down to t_d/n_g; the sum is

    r/n_g * (t_d + (t_d - t_d/n_g) + ... + t_d/n_g) = r * t_d / 2 * (1 + 1/n_g)

So one sub-group holds a whole epoch of rows, and many hold half of it. Batches kept for replay are counted apart.
"""

from joinery.model.errors import BadSpec, Complaint


def peak_buffer(rate: float, t_d: float, n_g: int) -> float:
    """The peak of not yet sent rows, in the unit of `rate` times that of `t_d`; `rate` is summed over the streams."""
    complaints = [
        (rate >= 0, Complaint("rate", str(rate), "at least 0", "sum the streams' rates")),
        (t_d > 0, Complaint("spec.epochs.distribution", str(t_d), "above 0", "use auto or, say, 2s")),
        (n_g >= 1, Complaint("spec.epochs.subgroups", str(n_g), "at least 1", "leave it out for 2")),
    ]
    if wrong := [complaint for holds, complaint in complaints if not holds]:
        raise BadSpec(wrong)
    return rate * t_d / 2 * (1 + 1 / n_g)
