"""Fit the prior that comes with vrik on motion capture, or one for each group of people left out.

    python tools/fit_prior.py --corpus FOLDER --torch PYTHON -o solvers/data/prior.npz
    python tools/fit_prior.py --corpus FOLDER --torch PYTHON -o FOLDER --groups

FOLDER holds the compact corpus with its reader ``corpus.py``. Rows are made here, with vrik's own
conditioning and features (``tools/prior_arrays.py``, some two minutes); PYTHON is an interpreter with numpy
and torch that fits the network on them (``tools/prior_network.py``, a minute or two on one core each). With
``--rows FILE`` the rows are kept in that file, or taken from there.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from solvers.features import mirror_columns, role_columns
from solvers.fitted import ARRAYS, Weights
from tools.prior_arrays import Rows, climbs, clips, laid_down, rows_of
from vrik.frames import ROLES
from vrik.skeleton import MIRROR

CREDIT = (
    "The data used in this project was obtained from mocap.cs.cmu.edu. "
    "The database was created with funding from NSF EIA-0196217."
)

GROUPS = {
    "A": ("cmu14",),
    "B": ("cmu02", "cmu05", "cmu09", "cmu127"),
    "C": ("cmu135", "cmu16", "cmu35", "cmu39", "cmu49"),
}
"""Subjects of the development clips, left out group by group; two from HDM05 are not in the corpus."""

STEPS = 750
"""More only fits the people of the corpus better, not others."""

LAID_DOWN = 2
"""One clip in so many is laid down as well."""


def write_rows(corpus: Path, path: Path) -> None:
    """Every clip as it is, again with all that goes wrong in life, and some laid down."""
    made: list[tuple[Rows, str, bool]] = []
    for number, clip in enumerate(clips(corpus)):
        if climbs(clip):
            continue
        rng = np.random.default_rng(number)
        made.append((rows_of(clip, None), clip["subject"], True))
        made.append((rows_of(clip, rng), clip["subject"], False))
        if number % LAID_DOWN == 0:
            made.append((rows_of(laid_down(clip, rng), rng), clip["subject"], False))
        print(f"{clip['name']}: {sum(len(rows.dt_s) for rows, _, _ in made)} rows", end="\r", flush=True)
    print()
    subjects = sorted({subject for _, subject, _ in made})
    columns, signs = mirror_columns()
    many = [len(rows.dt_s) for rows, _, _ in made]
    with open(path, "wb") as file:
        np.savez(
            file,
            features=np.concatenate([rows.features.astype(np.float16) for rows, _, _ in made]),
            joints=np.concatenate([rows.joints.astype(np.float32) for rows, _, _ in made]),
            dt_s=np.concatenate([rows.dt_s.astype(np.float32) for rows, _, _ in made]),
            clip=np.repeat(np.arange(len(made), dtype=np.int32), many),
            subject=np.repeat([subjects.index(subject) for _, subject, _ in made], many),
            as_it_is=np.repeat([clean for _, _, clean in made], many),
            subjects=np.array(subjects),
            mirror_columns=columns,
            mirror_signs=signs,
            mirror_joints=MIRROR,
            role_names=np.array(ROLES[3:]),
            role_columns=np.array([role_columns(role) for role in ROLES[3:]]),
        )


def fit(torch: str, rows: Path, out: Path, without: tuple[str, ...], seed: int, steps: int) -> None:
    """Run the other interpreter and pack what it found."""
    with tempfile.TemporaryDirectory() as folder:
        raw = Path(folder, "layers.npz")
        command = [torch, str(Path(__file__).with_name("prior_network.py")), str(rows), str(raw)]
        command += ["--seed", str(seed), "--steps", str(steps), "--without", ",".join(without)]
        done = subprocess.run(command)
        if done.returncode:
            raise SystemExit(f"fitting failed; {torch} must be a Python with numpy and torch")
        with np.load(raw) as found:
            arrays: dict[str, Any] = {name: found[name] for name in ARRAYS}
            subjects = tuple(str(name) for name in found["subjects"])
    Weights(arrays, subjects, CREDIT, f"seed {seed}, {steps} steps").save(out)
    print(f"{out}: {out.stat().st_size / 1e6:.2f} MB, fitted on {len(subjects)} subjects")


def main() -> None:
    """Make rows, then one prior or three."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--torch", required=True, metavar="PYTHON")
    parser.add_argument("-o", "--out", type=Path, required=True, help="a file, or a folder with --groups")
    parser.add_argument(
        "--groups", action="store_true", help="A.npz, B.npz and C.npz, each without its people"
    )
    parser.add_argument("--rows", type=Path, help="keep the rows here, or take them from here")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=STEPS)
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = flags.rows or Path(folder, "rows.npz")
        if not rows.exists():
            write_rows(flags.corpus, rows)
        if flags.groups:
            flags.out.mkdir(parents=True, exist_ok=True)
            for name, without in GROUPS.items():
                fit(flags.torch, rows, flags.out / f"{name}.npz", without, flags.seed, flags.steps)
        else:
            fit(flags.torch, rows, flags.out, (), flags.seed, flags.steps)


if __name__ == "__main__":
    main()
