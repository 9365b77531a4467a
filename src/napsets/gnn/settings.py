"""How a model is trained, and the two published ways of doing it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from napsets.checks.names import choose
from napsets.errors import InvalidInputError

SAMPLERS = ("neighbours", "shadow", "full", "auto")


@dataclass(frozen=True)
class Settings:
    """The settings of a training run, other than data, model and seed.

    Attributes
    ----------
    layers, hidden, dropout
        Shape of the model.
    heads : int
        Attention heads, for models that have them.
    learning_rate, weight_decay
        Of Adam.
    plateau_patience : int or None
        Halve the learning rate when validation accuracy has not risen for more than this many epochs.
    sampler : str
        ``neighbours`` (sampled, `fanouts` wide), ``shadow`` (one ego-net per node, `depth` deep and `ego_fanout` wide),
        ``full`` (all training nodes in one batch) or ``auto`` (full where the graph is small, else neighbours).
    batch_size, fanouts, depth, ego_fanout
        Of the samplers.
    epochs : int
        At most this many.
    patience : int or None
        Stop when validation accuracy has not risen for this many epochs.
    validations_per_epoch : int
        How often validation accuracy is looked at; the best weights are kept.
    inference : str
        ``exact`` (every neighbour counts) or ``sampled`` (as in training).
    """

    layers: int = 2
    hidden: int = 64
    dropout: float = 0.5
    heads: int = 4
    learning_rate: float = 0.01
    weight_decay: float = 0.0
    plateau_patience: int | None = None
    sampler: str = "auto"
    batch_size: int = 512
    fanouts: tuple[int, ...] = (25, 10)
    depth: int = 2
    ego_fanout: int = 20
    epochs: int = 30
    patience: int | None = None
    validations_per_epoch: int = 1
    inference: str = "exact"

    def __post_init__(self) -> None:
        for name in (
            "layers",
            "hidden",
            "heads",
            "batch_size",
            "depth",
            "ego_fanout",
            "epochs",
            "validations_per_epoch",
        ):
            if not isinstance(getattr(self, name), int) or getattr(self, name) < 1:
                raise InvalidInputError(f"`{name}` must be an integer of at least 1; got {getattr(self, name)!r}")
        if not 0 <= self.dropout < 1:
            raise InvalidInputError(f"`dropout` must be at least 0 and below 1; got {self.dropout}")
        if not self.learning_rate > 0:
            raise InvalidInputError(f"`learning_rate` must be above 0; got {self.learning_rate}")
        choose("sampler", self.sampler, dict.fromkeys(SAMPLERS))
        choose("inference", self.inference, dict.fromkeys(("exact", "sampled")))
        object.__setattr__(self, "fanouts", tuple(self.fanouts))
        if self.sampler in ("neighbours", "auto") and len(self.fanouts) != self.layers:
            raise InvalidInputError(f"`fanouts` must have one entry per layer, {self.layers}; got {self.fanouts}")

    def as_dict(self) -> dict[str, Any]:
        """Return the settings in a form that JSON can hold."""
        return asdict(self) | {"fanouts": list(self.fanouts)}


# The paper's text (its appendix on training): 2 layers of 64, Adam at 0.1, dropout 0.5, early stopping on validation
# accuracy. It leaves open the batch sizes, taken from the released code, and the number of epochs.
_PAPER = Settings(learning_rate=0.1, dropout=0.5, sampler="neighbours", batch_size=512, epochs=100, patience=20)
# The released code: no early stopping, the best of 30 epochs.
_CODE = Settings(learning_rate=0.01, dropout=0.2, sampler="neighbours", batch_size=512, epochs=30)

PRESETS: dict[str, dict[str, Settings]] = {
    "paper": {"default": _PAPER, "shadow": replace(_PAPER, sampler="shadow", batch_size=128)},
    "released-code": {
        "default": _CODE,
        "shadow": replace(
            _CODE,
            sampler="shadow",
            batch_size=128,
            hidden=256,
            learning_rate=0.1,
            plateau_patience=3,
            validations_per_epoch=2,
        ),
    },
}


def settings_for(preset: str, family: str = "default", **changes: Any) -> Settings:
    """Return a preset's settings for a family of models, with some of them changed.

    Parameters
    ----------
    preset : str
        ``paper`` (the paper's text) or ``released-code``.
    family : str
        ``shadow`` for the ShaDow models, ``default`` for all others.
    **changes
        Fields of `Settings`.
    """
    chosen = choose("preset", preset, PRESETS)
    known: Mapping[str, Any] = {field.name: None for field in fields(Settings)}
    for name in changes:
        choose("settings", name, known)
    return replace(chosen.get(family, chosen["default"]), **changes)
