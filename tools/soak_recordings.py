"""How much memory an hour of recording takes, command by command.

    python tools/soak_recordings.py                    one hour, some 20 minutes on two cores
    python tools/soak_recordings.py --minutes 5        quicker
    python tools/soak_recordings.py --only inspect repair

Makes a native recording of three devices at 90 Hz from the bundled session, runs each command on it in a
process of its own, and prints the largest resident memory of that process and how long it took; ``baseline``
is a process that only imports numpy, numba and the solver. Exit code 1 if one takes more than ``LIMIT_MB``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from recordings import RecordingWriter, open_recording, read_all
from recordings.samples import sample

LIMIT_MB = 300
RATE_HZ = 90

_MEASURE = """
import resource, sys
from vrik.cli.app import main
code = main(sys.argv[1:])
print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
sys.exit(code)
"""
_BASELINE = """
import resource, sys
import vrik.pipeline, vrik.warm
vrik.warm.warm_up()
print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
"""


def commands(source: Path, folder: Path) -> dict[str, list[str]]:
    """Name to arguments of what is measured."""
    name, to = str(source), str(folder)
    return {
        "inspect": ["inspect", name, "--json"],
        "repair": ["repair", name, f"{to}/repaired.mcap"],
        "convert to mcap": ["convert", name, f"{to}/c.mcap"],
        "convert to jsonl": ["convert", name, f"{to}/c.jsonl"],
        "convert to npz": ["convert", name, f"{to}/c.npz"],
        "solve to npz": ["solve", name, "-o", f"{to}/s.npz"],
        "solve to mcap": ["solve", name, "-o", f"{to}/s.mcap"],
        "solve to jsonl": ["solve", name, "-o", f"{to}/s.jsonl"],
        "replay": ["replay", name, "--speed", "0", "--no-page", "--plain"],
    }


def make(path: Path, minutes: float) -> int:
    """Write the recording: the bundled session, again and again. Returns the number of frames."""
    take = read_all(open_recording(sample("session_3points")))
    count = round(minutes * 60 * RATE_HZ)
    with RecordingWriter(path, take.devices) as writer:
        for i in range(count):
            there_and_back = i % (2 * len(take))  # so that nobody jumps from the end to the start
            row = min(there_and_back, 2 * len(take) - 1 - there_and_back)
            writer.write(replace(take.frame(row), host_time_ns=round(i * 1e9 / RATE_HZ)))
    return count


def peak_mb(program: str, args: list[str]) -> tuple[float, float]:
    """Largest resident memory [MB] and time [s] of a process.

    Raises:
        RuntimeError: If it fails.
    """
    begun = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", program, *args], capture_output=True, text=True)
    seconds = time.perf_counter() - begun
    if done.returncode:
        raise RuntimeError(f"{' '.join(args)}: {done.stderr}")
    unit = 1.0 if sys.platform == "darwin" else 1024.0  # bytes there, kilobytes elsewhere
    return int(done.stderr.rsplit("peak", 1)[1]) * unit / 1e6, seconds


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=60.0, help="length of the recording")
    parser.add_argument("--only", nargs="+", help="commands whose name begins so")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    figures: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "hour.mcap")
        frames = make(source, options.minutes)
        if not options.json:
            print(f"{frames} frames, {source.stat().st_size / 1e6:.0f} MB", flush=True)
        chosen = {"baseline": [], **commands(source, Path(folder))}
        for name, args in chosen.items():
            if options.only and name != "baseline" and not name.startswith(tuple(options.only)):
                continue
            memory, seconds = peak_mb(_MEASURE if args else _BASELINE, args)
            figures[name] = {"peak_mb": round(memory, 1), "seconds": round(seconds, 1)}
            if not options.json:
                print(f"  {name:18} {memory:6.0f} MB {seconds:7.1f} s", flush=True)
            for made in Path(folder).iterdir():
                if made != source:
                    made.unlink()
    if options.json:
        print(json.dumps({"frames": frames, **figures}, indent=2))
    return int(any(figure["peak_mb"] > LIMIT_MB for figure in figures.values()))


if __name__ == "__main__":
    sys.exit(main())
