"""The compiled kernels of the image: made once when it is built (warm.py), at hand in every process that it starts.

numba keeps what it has compiled only in a folder that it may write to, and a pod's root is read-only. So the kernels
lie in the image, and the first Python process of a pod copies them (a few MB) to `$NUMBA_CACHE_DIR`, which is in
`/tmp`. A `.pth` file imports this module whenever Python starts, whatever the pod's command is.
"""

import os
import sys

BAKED = os.path.join(sys.prefix, "kernels")
"""Where the build leaves them."""


def seed(target: str | None) -> None:
    """Copy them to where numba looks; whole or not at all, since several processes may begin at once."""
    if not target or target == BAKED or os.path.exists(target) or not os.path.isdir(BAKED):
        return
    import shutil  # noqa: PLC0415  only the first process of a pod needs these
    import tempfile  # noqa: PLC0415

    begun = tempfile.mkdtemp(prefix="kernels-", dir=os.path.dirname(target))
    shutil.copytree(BAKED, begun, dirs_exist_ok=True)
    try:
        os.rename(begun, target)
    except OSError:
        if not os.path.isdir(target):
            raise
        shutil.rmtree(begun)  # another process was first


seed(os.environ.get("NUMBA_CACHE_DIR"))
