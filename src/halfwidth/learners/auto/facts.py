"""What a steered run knows about itself, as notes and doubts need it (`status`, `feedback_status`)."""

from __future__ import annotations

from dataclasses import dataclass

from halfwidth.learners.auto.feedback import Response

Flag = tuple[str, str]


@dataclass(frozen=True)
class Facts:
    """What the run knows about itself."""

    n_seen: int
    burn_in: int
    began: int
    chunk_rows: int
    batch_rows: int
    curvature: str
    response: Response
    clipped_share: float
    bent: float
    restarts: int
    truncations: tuple[int, ...] = ()
    jumps: bool = False
    shifted: bool = False
    """Whether the root moves with the noise of the deployed theta."""
    drift: float = 1.0
    """The factor by which the Hessian of all rows differs from that where the feedback was measured."""
    wander: float = 0.0
    """What rows that change slowly add to the variance, where one slope stands for the response of all."""
    quadratic: bool = True
    """Whether the gradient was seen to be linear in theta."""
    curved: bool = False
    """Whether theta moved so far, while the response was measured, that its curvature matters."""
    detect: bool = True
    dithers: bool = True
    """Whether the engine chooses what is deployed."""
    hidden: tuple[int, ...] = ()
    unseen: float = 0.0
    """How large a response may be, as a share of the Hessian, that was looked for and not seen."""
    alike: bool = False
    """Whether chunks were taken for unlike each other, and are not."""
    steepness: float = 1.0
    """By how many times what the Hessian says gradients change, from the linearisation point to the deployed theta."""
