"""When to compile: NumPy does the work of kernels, to the same bits, until it has taken as long as compiling would.

Kernels that an earlier process has kept on disk are used at once; no work is so small that they would be slower
except for what takes less time than loading them. Nothing here loads the compiler before it is needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

#: Nanoseconds of work that are done sooner than a kernel is loaded.
_TRIFLE = 2e6


class Kernels:
    """Kernels that are compiled together, and that NumPy can stand in for.

    Parameters
    ----------
    seconds : float
        Processor time that compiling them takes.
    names : str
        Those that tell whether they are there, each as ``module.kernel``; one of them is enough.
    """

    def __init__(self, seconds: float, *names: str) -> None:
        self.names = names
        self._left = 1e9 * seconds
        self._kept: bool | None = None

    def pay(self, work: float) -> bool:
        """Return whether kernels are to do what NumPy would do in this many nanoseconds."""
        if work < _TRIFLE or _compiling_now:
            return _compiling_now
        if self._kept is None:
            self._kept = any(map(_is_there, self.names))
        if not self._kept:
            self._left -= work
            self._kept = self._left < 0
        return self._kept


def _is_there(name: str) -> bool:
    """Return whether a kernel is compiled, or kept on disk."""
    from napsets.kernels._jit import is_kept

    module, _, kernel = name.rpartition(".")
    path = f"{__package__}.{module}"
    return is_kept(getattr(import_module(path), kernel))


_compiling_now = False


@contextmanager
def compiling_now() -> Iterator[None]:
    """Meanwhile, let kernels do everything, so that those which are not kept yet are compiled."""
    global _compiling_now
    _compiling_now = True
    try:
        yield
    finally:
        _compiling_now = False
