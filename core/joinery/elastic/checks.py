"""Settings of the rules are checked at birth, all of them at once."""

from joinery.model.errors import BadSpec, Complaint


def check_settings(*checks: tuple[bool, str, object, str, str]) -> None:
    """Refuse with every complaint at once; a check is (holds, field, found, wanted, remedy)."""
    wrong = [
        Complaint(field, str(found), wanted, remedy) for holds, field, found, wanted, remedy in checks if not holds
    ]
    if wrong:
        raise BadSpec(wrong)
