"""Being asked to stop is never lost."""

from __future__ import annotations

import signal
import time
from types import SimpleNamespace

import pytest

from napsets.cli import _signals


def test_what_comes_while_a_module_is_loaded_is_heard_a_moment_later(monkeypatch):
    monkeypatch.setattr(_signals, "_asked", False)
    importing = SimpleNamespace(f_code=SimpleNamespace(co_filename=_signals._IMPORTING))
    before = signal.signal(signal.SIGTERM, _signals._interrupt)
    try:
        _signals._interrupt(signal.SIGTERM, importing)  # where what is raised could be lost
        with pytest.raises(_signals.Interrupted):
            time.sleep(30)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert _signals.stopping()


def test_what_comes_at_any_other_time_is_heard_at_once(monkeypatch):
    monkeypatch.setattr(_signals, "_asked", False)
    with pytest.raises(_signals.Interrupted):
        _signals._interrupt(signal.SIGTERM, None)
