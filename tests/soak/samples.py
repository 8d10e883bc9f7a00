"""What processes hold while they live: memory and descriptors, sampled, and how fast that grows."""
import os
import re
import threading
import time

from faults import jobs_of

ENDING = 8  # samples while a process may give its memory back


def held_by(pid):
    """(resident bytes, descriptors); None when it has ended. Pages of files do not count: the system takes and brings them as it likes."""
    try:
        with open(f"/proc/{pid}/status") as file:
            resident = re.search(r"RssAnon:\s*(\d+) kB", file.read())
        return int(resident.group(1)) * 1024, len(os.listdir(f"/proc/{pid}/fd"))
    except (OSError, AttributeError):
        return None


def begun(pid):
    """When it did, in ticks since the machine did; None when it has ended. Numbers of processes come again within hours."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return int(file.read().rpartition(")")[2].split()[19])
    except (OSError, IndexError, ValueError):
        return None


class Sampler:
    """Samples a script and its ranks four times a second until it is left."""

    def __init__(self, script):
        self.script, self.series, self.over = script, {}, threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *unused):
        self.over.set()
        self.thread.join()

    def look_at(self, script):
        """The one that took the last one's place."""
        self.script = script

    def run(self):
        begin = time.monotonic()
        while not self.over.wait(0.25):
            script = self.script
            ranks = [rank for _, ranks in jobs_of(script) for rank in ranks]
            for who, pid in [("the script", script), *(("a rank", rank) for rank in ranks)]:
                since = begun(pid)
                if since is not None and (held := held_by(pid)):
                    self.series.setdefault((who, pid, since), []).append((time.monotonic() - begin, *held))

    def trends(self, shortest):
        """{(what it is, its number, its begin): Trend} of those that lived so many seconds."""
        return {key: Trend(points[:-ENDING]) for key, points in self.series.items() if len(points) > 2 * ENDING and points[-1][0] - points[0][0] >= shortest}


class Trend:
    """The second half of a process's life: what it grew by from the first quarter of it to the last, and the slope of a line through it."""

    def __init__(self, points):
        most = max(p[2] for p in points)
        points = points[next(i for i, p in enumerate(points) if 2 * p[2] >= most and p[2] >= most - 6):]  # a start may take long on a busy machine
        half = points[len(points) // 2:]
        quarter = max(1, len(half) // 4)
        self.grown = max(p[1] for p in half[-quarter:]) - max(p[1] for p in half[:quarter])
        self.descriptors_grown = min(p[2] for p in half[-quarter:]) - min(p[2] for p in half[:quarter])
        self.seconds = points[-1][0] - points[0][0]
        self.peak = max(p[1] for p in points)
        self.most_descriptors = max(p[2] for p in points)
        mean_t, mean_r = sum(p[0] for p in half) / len(half), sum(p[1] for p in half) / len(half)
        spread = sum((p[0] - mean_t) ** 2 for p in half)
        self.slope = sum((p[0] - mean_t) * (p[1] - mean_r) for p in half) / spread if spread else 0.0  # bytes a second
