"""Training in several processes: each has its share of every batch, all have the same model.

A small model's operations are too small for several threads; two processes of one thread each take
about 0.65 of the time that one of two threads takes. `torchrun` starts them:

    torchrun --standalone --nproc-per-node 2 -m trainer pretrain --kind frontend --threads 1
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import distributed


@dataclass(frozen=True, slots=True)
class Process:
    """This one among `count`."""

    rank: int = 0
    count: int = 1

    @property
    def leads(self) -> bool:
        """Whether it is the one that writes files."""
        return self.rank == 0

    @contextmanager
    def first(self) -> Iterator[None]:
        """What the others do after the one that leads, who made a file that they read."""
        if not self.leads:
            distributed.barrier()
        yield
        if self.leads and self.count > 1:
            distributed.barrier()

    def share_of(self, rows: int) -> torch.Tensor:
        """Which of a batch's rows are this one's."""
        return torch.arange(self.rank, rows, self.count)

    def add_up(self, parameters: Iterable[torch.nn.Parameter], loss: torch.Tensor) -> torch.Tensor:
        """The loss over all processes; the parameters' gradients are those over all, too."""
        if self.count > 1:
            grads = [p.grad for p in parameters if p.grad is not None]
            whole = torch.cat([*(g.flatten() for g in grads), loss.reshape(1)])
            distributed.all_reduce(whole)
            sizes = [g.numel() for g in grads]
            for grad, summed in zip(grads, whole[:-1].split(sizes), strict=True):
                grad.copy_(summed.view_as(grad))
            loss = whole[-1]
        return loss


def join_processes() -> Process:
    """This process, which joins the others where `torchrun` started several."""
    if not distributed.is_torchelastic_launched():
        return Process()
    if not distributed.is_initialized():
        distributed.init_process_group("gloo")
    return Process(distributed.get_rank(), distributed.get_world_size())
