"""Fit the network of a fitted prior. Needs numpy and torch, and nothing of vrik.

    python tools/prior_network.py ARRAYS.npz OUT.npz [--without cmu14,...] [--seed 0] [--steps 3000]

ARRAYS is what ``tools/fit_prior.py`` writes, which also runs this. OUT holds the layers, with the scales of
inputs and outputs already in them.
"""

from __future__ import annotations

import argparse
import importlib
import time
from pathlib import Path
from typing import Any

import numpy as np

HIDDEN = 256
PAIRS = 1024
"""Pairs of neighbouring frames in a batch."""
RATE, DECAY = 2e-3, 0.02
BLUR = 0.05
"""Noise on the inputs, over their spread; people who were never seen differ a little in everything."""
SMOOTH = 3.0
"""Weight of the distance of frame differences, at 60 frames a second."""
RATE_HZ = 60.0

# Sets of trackers beyond head and hands and how often each is practised; one in 20 is any set.
KNEES, FEET, ELBOWS = ("left_knee", "right_knee"), ("left_foot", "right_foot"), ("left_elbow", "right_elbow")
SETS: tuple[tuple[float, tuple[str, ...]], ...] = (
    (0.50, ()),
    (0.11, ("waist",)),
    (0.03, FEET),
    (0.11, ("waist", *FEET)),
    (0.06, ("waist", *FEET, *KNEES)),
    (0.02, ("waist", *FEET, *ELBOWS)),
    (0.05, ("waist", *FEET, *KNEES, *ELBOWS)),
    (0.05, ("waist", *FEET, *KNEES, *ELBOWS, "chest")),
    (0.02, ("waist", "chest")),
)


class Batches:
    """Pairs of neighbouring rows, mirrored, masked and blurred at random."""

    def __init__(self, data: Any, chosen: Any, rng: np.random.Generator) -> None:
        self.rng = rng
        self.features, self.joints = data["features"], data["joints"].reshape(len(data["features"]), -1)
        self.dt_s, clip = data["dt_s"], data["clip"]
        follows = (clip[1:] == clip[:-1]) & (self.dt_s[1:] > 0.0) & chosen[1:]
        self.first = np.flatnonzero(follows)
        self.columns, self.signs = data["mirror_columns"], data["mirror_signs"].astype(np.float32)
        joints = data["mirror_joints"]
        self.joint_columns = (3 * joints[:, None] + np.arange(3)).reshape(-1)
        self.joint_signs = np.tile(np.array([-1.0, 1.0, 1.0], np.float32), len(joints))
        self.roles = {str(n): c for n, c in zip(data["role_names"], data["role_columns"], strict=True)}
        self._cumulative = np.cumsum([share for share, _ in SETS])

    def draw(self, pairs: int) -> tuple[Any, Any, Any]:
        """Inputs (2 * pairs, f), joints (2 * pairs, 66), time steps (pairs,); second frames come last."""
        first = self.rng.choice(self.first, pairs)
        rows = np.concatenate([first, first + 1])
        x, y = self.features[rows].astype(np.float32), self.joints[rows].copy()
        flip = np.tile(self.rng.random(pairs) < 0.5, 2)
        x[flip] = x[flip][:, self.columns] * self.signs
        y[flip] = y[flip][:, self.joint_columns] * self.joint_signs
        self._mask(x, pairs)
        return x, y, self.dt_s[first + 1]

    def _mask(self, x: Any, pairs: int) -> None:
        """Take trackers away, a set a pair."""
        which = np.searchsorted(self._cumulative, self.rng.random(pairs))
        for name, columns in self.roles.items():
            kept = np.array([name in worn for _, worn in SETS] + [False])[np.minimum(which, len(SETS))]
            kept = np.where(which >= len(SETS), self.rng.random(pairs) < 0.5, kept).astype(np.float32)
            fading = self.rng.random(pairs) < 0.03
            kept *= np.where(fading, self.rng.random(pairs), 1.0)
            x[:, columns] *= np.tile(kept, 2)[:, None].astype(np.float32)


def fit(data: Any, chosen: Any, seed: int, steps: int, held: Any) -> dict[str, Any]:
    """Train on the chosen rows; returns the layers as float32 arrays."""
    torch = importlib.import_module("torch")  # the one dependency that vrik does not have
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    rng = np.random.default_rng(seed)
    batches = Batches(data, chosen, rng)
    some = rng.choice(batches.first, min(60000, len(batches.first)))
    x = np.concatenate(
        [f := data["features"][some].astype(np.float32), f[:, batches.columns] * batches.signs]
    )
    y = np.concatenate([j := batches.joints[some], j[:, batches.joint_columns] * batches.joint_signs])
    mean, spread = x.mean(0), x.std(0)
    role = np.concatenate(list(batches.roles.values()))
    mean[role] = 0.0  # absent trackers are zeros
    scale = np.where(spread > 1e-4, 1.0 / np.maximum(spread, 1e-4), 0.0).astype(np.float32)
    scale[0] = 0.0  # the time step says nothing about the body
    low, high = x.min(0), x.max(0)
    low[role], high[role] = np.minimum(low[role], 0.0), np.maximum(high[role], 0.0)
    y_mean, y_spread = y.mean(0), max(float(y.std(0).mean()), 1e-6)
    net = torch.nn.Sequential(
        torch.nn.Linear(x.shape[1], HIDDEN),
        torch.nn.SiLU(),
        torch.nn.Linear(HIDDEN, HIDDEN),
        torch.nn.SiLU(),
        torch.nn.Linear(HIDDEN, y.shape[1]),
    )
    best = torch.optim.AdamW(net.parameters(), lr=RATE, weight_decay=DECAY)
    plan = torch.optim.lr_scheduler.OneCycleLR(best, RATE, total_steps=steps, pct_start=0.1)
    mean_t, scale_t = torch.from_numpy(mean), torch.from_numpy(scale)
    began = time.perf_counter()
    for step in range(steps):
        inputs, wanted, dt_s = batches.draw(PAIRS)
        inputs = (torch.from_numpy(inputs) - mean_t) * scale_t
        blurred = inputs + BLUR * torch.randn(PAIRS, inputs.shape[1]).repeat(2, 1) * (inputs != 0.0)
        target = (torch.from_numpy(wanted) - torch.from_numpy(y_mean)) / y_spread
        miss = (net(blurred) - target).reshape(2, PAIRS, -1, 3)
        calm = torch.from_numpy(1.0 / (RATE_HZ * dt_s)).reshape(-1, 1)
        loss = (miss.square().sum(-1) + 1e-8).sqrt().mean()
        loss = loss + SMOOTH * (((miss[1] - miss[0]).square().sum(-1) + 1e-10).sqrt() * calm).mean()
        best.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        best.step()
        plan.step()
        if step % 250 == 249 or step == steps - 1:
            told = f"{step + 1} steps, {time.perf_counter() - began:.0f} s, loss {float(loss.detach()):.3f}"
            layers = _layers(net, mean, scale, low, high, y_mean, y_spread)
            print(told, "left out", report(layers, data, held, batches), flush=True)
    return _layers(net, mean, scale, low, high, y_mean, y_spread)


def _layers(
    net: Any, mean: Any, scale: Any, low: Any, high: Any, y_mean: Any, y_spread: float
) -> dict[str, Any]:
    """Weights with the scales folded in: ``x @ w + b``, joints out."""
    numbers = [p.detach().numpy().astype(np.float64) for p in net.parameters()]
    w0, b0, w1, b1, w2, b2 = numbers
    out = {
        "low": low,
        "high": high,
        "w0": scale[:, None] * w0.T,
        "b0": b0 - (mean * scale) @ w0.T,
        "w1": w1.T,
        "b1": b1,
        "w2": y_spread * w2.T,
        "b2": y_spread * b2 + y_mean,
    }
    return {name: np.asarray(value, np.float32) for name, value in out.items()}


def report(layers: dict[str, Any], data: Any, held: Any, batches: Batches) -> str:
    """Mean distance of the 22 joints, over 1.7 m, on rows that were left out, for some sets of trackers."""
    if not held.any():
        return "-"
    rows = np.flatnonzero(held)[::7]
    told = []
    for name, worn in (("3", ()), ("4", ("waist",)), ("6", ("waist", *FEET))):
        x = data["features"][rows].astype(np.float32)
        for role, columns in batches.roles.items():
            if role not in worn:
                x[:, columns] = 0.0
        x = np.clip(x, layers["low"], layers["high"])
        for i in range(3):
            x = x @ layers[f"w{i}"] + layers[f"b{i}"]
            if i < 2:
                x = x / (1.0 + np.exp(-x))
        miss = np.linalg.norm((x - batches.joints[rows]).reshape(len(rows), -1, 3), axis=-1)
        told.append(f"{name}: {170.0 * miss.mean():.2f}")
    return " ".join(told)


def main() -> None:
    """Fit once and write the layers."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("arrays", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--without", default="", help="subjects to leave out, with commas between")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=3000)
    flags = parser.parse_args()
    with np.load(flags.arrays) as stored:
        data = {name: stored[name] for name in stored.files}
    out = [name for name in flags.without.split(",") if name]
    left = np.isin(data["subjects"], out)[data["subject"]]
    layers = fit(data, ~left, flags.seed, flags.steps, left & data["as_it_is"])
    used = [str(name) for name in data["subjects"] if name not in out]
    with open(flags.out, "wb") as file:
        np.savez(file, **layers, subjects=np.array(used), seed=flags.seed, steps=flags.steps)


if __name__ == "__main__":
    main()
