"""Prediction sets for nodes, as a module that PyTorch Geometric could hold: it needs torch and torch_geometric alone.

``conformal_sets(model, data, data.calibration_mask)`` gives every node a set of classes from a trained model. The same
sets, and many more methods, come from ``napsets``, whose tests compare the two.
"""

from __future__ import annotations

import math
import warnings

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import degree, scatter

__all__ = ["ConformalSets", "conformal_sets"]


class ConformalSets(torch.nn.Module):
    r"""Conformal prediction sets for node classification.

    Given the probabilities of any trained model, a score :math:`S(v, y)` says how badly class :math:`y` fits node
    :math:`v`. With :math:`n` calibration nodes, the set of a node holds all classes whose score is at most the
    :math:`\lceil (n + 1)(1 - \alpha) \rceil`-th smallest score of the calibration nodes at their true classes. If the
    calibration nodes are a random sample of the nodes that did not train the model, then

    .. math::
        1 - \alpha \leq P(Y_v \in \mathcal{C}(v)) \leq 1 - \alpha + \frac{1}{n + 1}.

    The scores are those of adaptive prediction sets from the `"Classification with Valid and Adaptive Coverage"
    <https://arxiv.org/abs/2006.02544>`_ paper (``"aps"``) or :math:`1 - p(y \mid v)` (``"thr"``), averaged over
    neighbors as in the `"Conformal Prediction Sets for Graph Neural Networks"
    <https://proceedings.mlr.press/v202/h-zargarbashi23a.html>`_ paper (DAPS):

    .. math::
        \hat{S}(v, y) = (1 - \lambda) S(v, y) + \frac{\lambda}{|\mathcal{N}(v)|} \sum_{w \in \mathcal{N}(v)} S(w, y)

    Args:
        alpha (float, optional): The error rate :math:`\alpha`. (default: :obj:`0.1`)
        score (str, optional): :obj:`"aps"` or :obj:`"thr"`. (default: :obj:`"aps"`)
        diffusion (float, optional): The strength :math:`\lambda` of the average over neighbors, from 0 to 1. It makes
            sets smaller where neighbors tend to share a class. (default: :obj:`0.5`)
    """

    threshold: Tensor

    def __init__(self, alpha: float = 0.1, score: str = "aps", diffusion: float = 0.5) -> None:
        super().__init__()
        if not 0.0 < alpha < 1.0:
            raise ValueError(f"'alpha' must lie between 0 and 1 (got {alpha})")
        if score not in ("aps", "thr"):
            raise ValueError(f"'score' must be 'aps' or 'thr' (got '{score}')")
        if not 0.0 <= diffusion <= 1.0:
            raise ValueError(f"'diffusion' must lie between 0 and 1 (got {diffusion})")
        self.alpha, self.score, self.diffusion = alpha, score, diffusion
        self.register_buffer("threshold", torch.tensor(math.inf, dtype=torch.double))

    def scores(self, probs: Tensor, edge_index: Tensor | None = None, u: Tensor | None = None) -> Tensor:
        r"""Returns the score of every class of every node.

        Args:
            probs (torch.Tensor): The probabilities of shape :obj:`[num_nodes, num_classes]`.
            edge_index (torch.Tensor, optional): The edges; without them scores are not averaged.
            u (torch.Tensor, optional): One uniform number per node, which breaks ties in ``"aps"``. The same ones are
                needed for calibration and prediction; by default they are drawn from a fixed seed.
        """
        probs = probs.double()
        if self.score == "thr":
            out = 1.0 - probs
        else:
            if u is None:
                u = torch.rand(probs.size(0), generator=torch.Generator().manual_seed(0), dtype=torch.double)
            ordered, order = probs.sort(dim=1, descending=True, stable=True)
            ordered = ordered.cumsum(dim=1) - u.to(probs.device).view(-1, 1) * ordered
            out = torch.empty_like(probs).scatter_(1, order, ordered)
        if edge_index is None or self.diffusion == 0.0:
            return out
        row, col = edge_index
        mean = scatter(out[row], col, dim=0, dim_size=out.size(0), reduce="mean")
        mixed = (1.0 - self.diffusion) * out + self.diffusion * mean
        lonely = degree(col, out.size(0)) == 0
        return torch.where(lonely.view(-1, 1), out, mixed)

    @torch.no_grad()
    def calibrate(
        self,
        probs: Tensor,
        y: Tensor,
        mask: Tensor,
        edge_index: Tensor | None = None,
        u: Tensor | None = None,
    ) -> ConformalSets:
        r"""Sets the threshold from the nodes in :obj:`mask`, none of which may have trained the model."""
        scores = self.scores(probs, edge_index, u)[mask]
        own = scores.gather(1, y[mask].view(-1, 1)).view(-1).sort().values
        place = math.ceil((1.0 - self.alpha) * (own.numel() + 1) * (1.0 - 1e-9))
        self.threshold.fill_(own[place - 1] if place <= own.numel() else math.inf)
        return self

    @torch.no_grad()
    def forward(self, probs: Tensor, edge_index: Tensor | None = None, u: Tensor | None = None) -> Tensor:
        r"""Returns the sets as a boolean tensor of shape :obj:`[num_nodes, num_classes]`."""
        return self.scores(probs, edge_index, u) <= self.threshold

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}(alpha={self.alpha}, score='{self.score}', diffusion={self.diffusion})"


@torch.no_grad()
def conformal_sets(
    model: torch.nn.Module,
    data: Data,
    calibration_mask: Tensor,
    alpha: float = 0.1,
    score: str = "aps",
    diffusion: float = 0.5,
) -> Tensor:
    r"""Returns prediction sets for all nodes of :obj:`data`, of shape :obj:`[num_nodes, num_classes]`.

    Args:
        model (torch.nn.Module): A trained model, called as :obj:`model(data.x, data.edge_index)`; it returns logits or
            log-probabilities, and is left in the mode it was in.
        data (torch_geometric.data.Data): The graph, with :obj:`x`, :obj:`edge_index` and :obj:`y`.
        calibration_mask (torch.Tensor): A random part of the nodes that did not train the model.
        alpha, score, diffusion: As in :class:`ConformalSets`.
    """
    train_mask = getattr(data, "train_mask", None)
    if train_mask is not None and train_mask.dim() == 1 and bool((train_mask & calibration_mask).any()):
        warnings.warn("'calibration_mask' holds nodes of 'train_mask': the sets will cover too little", stacklevel=2)
    training = model.training
    model.eval()
    try:
        probs = model(data.x, data.edge_index).softmax(dim=1)
    finally:
        model.train(training)
    assert isinstance(data.y, Tensor)
    module = ConformalSets(alpha, score, diffusion)
    module.calibrate(probs, data.y, calibration_mask, data.edge_index)
    return module(probs, data.edge_index)
