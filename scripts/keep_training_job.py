"""A start of mpirun that leaves nothing behind; for scripts/keep_training."""
import contextlib
import ctypes
import fcntl
import glob
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PR_SET_CHILD_SUBREAPER = 36
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)


def adopt_orphans():
    """Ranks that outlive mpirun become children of this process, which takes their exit codes: who is process 1 of a container may not."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def handed_on(descriptor):
    """Puts a process of its own before an output of this one: a reader that ends, or a full disk, costs lines and not the run."""
    if os.isatty(descriptor):
        return
    reader, writer = os.pipe()
    if os.fork() == 0:
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        os.close(writer)
        while data := os.read(reader, 65536):
            try:
                while data:
                    data = data[os.write(descriptor, data):]
            except OSError:
                pass
        os._exit(0)
    os.dup2(writer, descriptor)
    os.close(reader)
    os.close(writer)


class Errors:
    """Puts a process before the standard error of one job that hands it on, as handed_on() does, and keeps the last line that tells of an error."""

    PATIENCE_SECONDS, LONGEST = 5, 4000

    def __init__(self, descriptor=2):
        lines, self.descriptor = os.pipe()
        self.kept, keep = os.pipe()
        if os.fork() == 0:
            for number in SIGNALS:
                signal.signal(number, signal.SIG_IGN)
            for number in map(int, os.listdir("/proc/self/fd")):  # the guard's among them, which tells it that this script lives
                if number > 2 and number not in (lines, descriptor, keep):
                    with contextlib.suppress(OSError):
                        os.close(number)
            self.hand_on(lines, descriptor, keep)
            os._exit(0)
        os.close(lines)
        os.close(keep)

    def hand_on(self, lines, descriptor, keep):
        rest, last = b"", b""
        while data := os.read(lines, 65536):
            *whole, rest = (rest + data).split(b"\n")
            rest = rest[:self.LONGEST]
            last = next((line for line in reversed(whole) if re.match(rb"(\[rank \d+\] )?error: ", line)), last)
            with contextlib.suppress(OSError):
                while data:
                    data = data[os.write(descriptor, data):]
        with contextlib.suppress(OSError):  # the script is gone
            os.write(keep, last[:self.LONGEST])

    def begun(self):
        """The job has its own copy of the descriptor."""
        os.close(self.descriptor)

    def last(self):
        """Of a job that has ended; empty: it told of none, or whoever reads its words is slower than this script waits."""
        line = os.read(self.kept, self.LONGEST) if select.select([self.kept], [], [], self.PATIENCE_SECONDS)[0] else b""
        os.close(self.kept)
        return line.decode(errors="replace")


def take_exit_codes():
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


class Scratch:
    """A folder for what a job keeps in `place` while it runs. Those of supervisors that were killed, and whose jobs have ended, go."""

    def __init__(self, place):
        for old in glob.glob(glob.escape(place) + "/zero-keep-*"):
            try:
                lock = os.open(old, os.O_RDONLY | os.O_DIRECTORY)
            except OSError:
                continue
            with contextlib.suppress(OSError):  # in use
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(old, ignore_errors=True)
            os.close(lock)
        while True:
            self.folder = tempfile.mkdtemp(prefix=f"zero-keep-{os.getpid()}-", dir=place)
            self.lock = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
            fcntl.flock(self.lock, fcntl.LOCK_EX)
            if os.path.isdir(self.folder):  # else another supervisor took it for an old one before it was locked
                return
            os.close(self.lock)

    def clear(self):
        for name in os.listdir(self.folder):
            path = os.path.join(self.folder, name)
            shutil.rmtree(path, ignore_errors=True) if os.path.isdir(path) and not os.path.islink(path) else os.remove(path)

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)


class Job:
    """An mpirun with its ranks, in a session of its own: a terminal's signals do not reach it, and none of its processes is lost sight of."""

    def __init__(self, pid, scratch, shared, mpirun=None, guard=None, errors=None):
        self.pid, self.scratch, self.shared, self.mpirun, self.guard, self.errors, self.ranks = pid, scratch, shared, mpirun, guard, errors, set()
        self.error = ""  # the last one that it told of, when it has ended

    @classmethod
    def start(cls, command, scratch, shared, guard):
        environment = dict(os.environ, OMPI_MCA_orte_tmpdir_base=scratch.folder, OMPI_MCA_btl_vader_backing_directory=shared.folder)
        errors = Errors()
        mpirun = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=errors.descriptor, env=environment, start_new_session=True,
                                  preexec_fn=lambda: guard.tell(os.getpid()))
        errors.begun()
        return cls(mpirun.pid, scratch, shared, mpirun, guard, errors)

    def has_ended(self):
        self.ranks |= self.children()
        return self.mpirun.poll() is not None if self.mpirun else self.pid not in self.processes()

    def children(self):
        """The ranks that live."""
        found = set()
        try:
            with open(f"/proc/{self.pid}/task/{self.pid}/children") as file:
                pids = file.read().split()
        except OSError:  # a kernel without such lists
            pids = self.processes()
        for pid in pids:
            with contextlib.suppress(OSError), open(f"/proc/{pid}/comm") as file:
                if file.read().strip() == "zero_train":
                    found.add(int(pid))
        return found

    def processes(self):
        """Those of the session. The dead are among them until their last thread has ended, when their parent, who may be this process,
        takes their exit code: until then they hold files and locks."""
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat") as file:
                words = file.read().rpartition(")")[2].split()
                if int(words[3]) == self.pid and (self.mpirun or words[0] != "Z"):
                    found.append(int(name))
        return found

    def signal(self, pids, number):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def ask_to_stop(self):
        """False: there are no ranks yet, and mpirun forgets signals that come before them."""
        if not self.children():
            return False
        self.signal(self.processes(), signal.SIGCONT)  # a rank that stands still stops nothing
        self.signal([self.pid], signal.SIGUSR1)
        return True

    def end(self):
        """The exit code as a shell has it. Kills what is left, and removes what that leaves behind."""
        patience = time.monotonic() + 60
        while left := self.processes():
            self.signal(left, signal.SIGKILL)
            if self.mpirun and self.mpirun.poll() is not None:
                take_exit_codes()
            if time.monotonic() > patience:
                print(f"keep_training: process {left[0]} cannot be killed", file=sys.stderr, flush=True)
                break
            time.sleep(0.02)
        for rank in self.ranks:
            for segment in glob.glob(f"/dev/shm/zero-{rank}-*"):
                with contextlib.suppress(OSError):
                    os.remove(segment)
        self.scratch.clear()
        self.shared.clear()
        if self.guard:
            self.guard.tell(0)
        if self.errors:
            self.error, self.errors = self.errors.last(), None
        code = self.mpirun.wait() if self.mpirun else 0
        return code if code >= 0 else 128 - code


class Guard:
    """A process that outlives this one: where this one is killed, it stops the job that runs with a checkpoint, and clears up."""

    def __init__(self, scratch, shared):
        reader, self.writer = os.pipe()
        if os.fork() > 0:
            os.close(reader)
            return
        os.setsid()
        os.close(self.writer)
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        told = b"0\n"
        while more := os.read(reader, 4096):
            told = (told + more)[-64:]
        if pid := int(told.split()[-1]):
            job, asked = Job(pid, scratch, shared), False
            while not job.has_ended():
                asked = asked or job.ask_to_stop()
                time.sleep(0.05)
            job.end()
            scratch.remove()
            shared.remove()
        os._exit(0)

    def tell(self, pid):
        """Of the mpirun that runs from now on, 0: none."""
        os.write(self.writer, f"{pid}\n".encode())

    def leave(self):
        self.tell(0)
        os.close(self.writer)
