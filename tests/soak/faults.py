"""What the soak does to a run: to its processes, its disk and its checkpoints."""
import os
import re
import shutil
import signal
import subprocess
import time

# (name, how often beside the others)
KINDS = (("kill a rank", 5), ("kill mpirun", 3), ("kill all", 3), ("stop a rank for a while", 4), ("stop a rank for good", 1), ("stop all for good", 1),
         ("SIGUSR1 to mpirun", 3), ("SIGTERM to a rank", 2), ("fill the disk", 4), ("flip a bit", 5), ("SIGTERM to the script", 2), ("kill the script", 1))


def failing_calls(folder, below, during=None, reason=None, **plan):
    """The environment of processes whose calls on files below a path fail by a plan (failing_calls.c, which is built in `folder`):
    at=3, for_good=1, one_in=200, seed=7, calls="look list", count=FILE; or all while a file `during` exists."""
    library = os.path.join(folder, "failing_calls.so")
    if not os.path.exists(library):
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "failing_calls.c")
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    settings = {"below": os.path.realpath(below), "while": during, "with": reason, **plan}
    return {"LD_PRELOAD": library, **{f"FAILING_{name.upper()}": str(value) for name, value in settings.items() if value is not None}}


def children(pid, program):
    """Process ids of the living children that run it."""
    found = []
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            pids = file.read().split()
    except OSError:
        return found
    for name in pids:
        try:
            with open(f"/proc/{name}/comm") as file:
                if file.read().strip() == program:
                    found.append(int(name))
        except OSError:
            pass
    return sorted(found)


def jobs_of(script):
    """[(mpirun, its ranks)] below scripts/keep_training."""
    return [(mpirun, children(mpirun, "zero_train")) for train in children(script, "train") for mpirun in children(train, "mpirun")]


def send(pids, number):
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


class Disk:
    """A small file system, which another file fills."""

    def __init__(self, folder):
        self.folder, self.filler = folder, os.path.join(folder, "filler")

    def fill(self, left):
        space = os.statvfs(self.folder)
        try:
            with open(self.filler, "wb") as file:
                file.write(b"x" * max(0, space.f_bavail * space.f_bsize - left))
        except OSError:
            pass

    def empty(self):
        if os.path.exists(self.filler):
            os.remove(self.filler)


class Checkpoints:
    """Of a run: which of them were damaged here. One stays whole, so that there is one to go on from."""

    def __init__(self, folder):
        self.folder, self.damaged, self.set_aside = folder, set(), 0

    def whole(self):
        """[(name, its folder's number)], the newest first; a step that was written again is another folder."""
        found = []
        for name in sorted(os.listdir(self.folder) if os.path.isdir(self.folder) else [], reverse=True):
            path = os.path.join(self.folder, name)
            try:
                if re.fullmatch(r"step-\d{8}", name) and os.path.exists(path + "/manifest.json"):
                    found.append((name, os.stat(path).st_ino))
            except OSError:
                pass
        return [key for key in found if key not in self.damaged]

    def flip(self, rng_file, rng_bit):
        """Flips a bit of the newest one; None where it is the only whole one."""
        whole = self.whole()
        if len(whole) < 2:
            return None
        folder = os.path.join(self.folder, whole[0][0])
        try:
            names = sorted(os.listdir(folder))
            name = names[int(rng_file * len(names))]
            with open(os.path.join(folder, name), "r+b") as file:
                if (os.stat(folder).st_ino != whole[0][1]) or not (size := os.fstat(file.fileno()).st_size):
                    return None
                bit = int(rng_bit * size * 8)
                self.damaged.add(whole[0])
                file.seek(bit // 8)
                byte = file.read(1)[0]
                file.seek(bit // 8)
                file.write(bytes([byte ^ 1 << bit % 8]))
        except (OSError, IndexError):  # it made room for a newer one
            return None
        return f"{whole[0][0]}/{name} bit {bit}"

    def clear_set_aside(self):
        """Names of those that were set aside although nobody damaged them. Removes what was set aside, as a user does who has looked at it."""
        wrong = []
        for name in os.listdir(self.folder) if os.path.isdir(self.folder) else []:
            path = os.path.join(self.folder, name)
            if name.endswith(".damaged"):
                try:
                    if (name[:-len(".damaged")], os.stat(path).st_ino) not in self.damaged:
                        wrong.append(name)
                except OSError:
                    continue
                self.set_aside += 1
                shutil.rmtree(path, ignore_errors=True)
        return wrong


class Fault:
    """One, drawn ahead: what a seed does does not hang on when processes come and go."""

    def __init__(self, random, every, only=""):
        """`only`: what the kinds to draw from begin with."""
        self.gap = 0.05 + random.expovariate(1 / every)
        kinds = [(kind, weight) for kind, weight in KINDS if kind.startswith(only)]
        self.kind = random.choices([kind for kind, _ in kinds], [weight for _, weight in kinds])[0]
        self.index, self.seconds = random.randrange(1 << 16), random.uniform(0.2, 4)
        self.left, self.places = random.choice((0, 4096, 262144)), (random.random(), random.random())
        self.kills_after = random.random() < 0.7

    def strike(self, script, disk, checkpoints):
        """What was done, None where there was nobody to do it to. Faults that the script does not outlive are the caller's."""
        jobs = [mpirun for mpirun, _ in jobs_of(script)]
        ranks = [rank for _, ranks in jobs_of(script) for rank in ranks]
        one = [ranks[self.index % len(ranks)]] if ranks else []
        if self.kind == "fill the disk":
            disk.fill(self.left)
            if self.kills_after:
                time.sleep(self.seconds / 2)
                send(one, signal.SIGKILL)
            time.sleep(self.seconds)
            disk.empty()
            return f"but for {self.left} bytes for {self.seconds:.1f} s" + (", a rank killed meanwhile" if self.kills_after and one else "")
        if self.kind == "flip a bit":
            what = checkpoints.flip(*self.places)
            if what and self.kills_after:
                send(one, signal.SIGKILL)
            return what and what + (", a rank killed" if self.kills_after and one else "")
        if not ranks:
            return None
        if self.kind == "stop a rank for a while":
            send(one, signal.SIGSTOP)
            time.sleep(self.seconds)
            send(one, signal.SIGCONT)
            return f"for {self.seconds:.1f} s"
        target, number = {"kill a rank": (one, signal.SIGKILL), "kill mpirun": (jobs, signal.SIGKILL), "kill all": (jobs + ranks, signal.SIGKILL),
                          "stop a rank for good": (one, signal.SIGSTOP), "stop all for good": (ranks + jobs, signal.SIGSTOP),
                          "SIGUSR1 to mpirun": (jobs, signal.SIGUSR1), "SIGTERM to a rank": (one, signal.SIGTERM)}[self.kind]
        send(target, number)
        return " ".join(map(str, target))
