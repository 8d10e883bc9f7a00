"""A start of mpirun that leaves nothing behind; for scripts/keep_training."""
import ctypes
import fcntl
import glob
import os
import shutil
import signal
import subprocess
import tempfile
import time

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)
prctl = ctypes.CDLL(None, use_errno=True).prctl


def adopt_orphans():
    """Ranks that outlive mpirun become children of this process, which takes their exit codes: who is process 1 of a container may not."""
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


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


class Scratch:
    """A folder for what a job keeps in `place` while it runs. Those of supervisors that were killed, and whose jobs have ended, go."""

    def __init__(self, place):
        for old in glob.glob(glob.escape(place) + "/zero-keep-*"):
            try:
                lock = os.open(old, os.O_RDONLY | os.O_DIRECTORY)
            except OSError:
                continue
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(old, ignore_errors=True)
            except OSError:  # in use
                pass
            os.close(lock)
        while True:
            self.folder = tempfile.mkdtemp(prefix="zero-keep-", dir=place)
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
    """One start of mpirun, in a session of its own: a terminal's signals do not reach it, and none of its processes is lost sight of."""

    def __init__(self, command, scratch, shared):
        self.scratch, self.shared, self.ranks = scratch, shared, set()
        environment = dict(os.environ, OMPI_MCA_orte_tmpdir_base=scratch.folder, OMPI_MCA_btl_vader_backing_directory=shared.folder)
        # Whoever kills this script stops the run with a checkpoint.
        self.mpirun = subprocess.Popen(command, stdin=subprocess.DEVNULL, env=environment, start_new_session=True,
                                       preexec_fn=lambda: prctl(PR_SET_PDEATHSIG, signal.SIGUSR1, 0, 0, 0))

    def has_ended(self):
        self.ranks |= self.children()
        return self.mpirun.poll() is not None

    def children(self):
        """The ranks that live."""
        found = set()
        try:
            with open(f"/proc/{self.mpirun.pid}/task/{self.mpirun.pid}/children") as file:
                pids = file.read().split()
        except OSError:
            pids = []
        for pid in pids:
            try:
                with open(f"/proc/{pid}/comm") as file:
                    if file.read().strip() == "zero_train":
                        found.add(int(pid))
            except OSError:
                pass
        return found

    def processes(self):
        """Those of the session, but for the dead."""
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/stat") as file:
                    words = file.read().rpartition(")")[2].split()
            except OSError:
                continue
            if int(words[3]) == self.mpirun.pid and words[0] not in "ZX":
                found.append(int(name))
        return found

    def signal(self, pids, number):
        for pid in pids:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def ask_to_stop(self):
        self.signal(self.processes(), signal.SIGCONT)  # a rank that stands still stops nothing
        self.signal([self.mpirun.pid], signal.SIGUSR1)

    def end(self):
        """The exit code as a shell has it. Kills what is left, and removes what that leaves behind."""
        patience = time.monotonic() + 60
        while left := self.processes():
            self.signal(left, signal.SIGKILL)
            self.mpirun.poll()
            time.sleep(0.02)
            if time.monotonic() > patience:
                say(f"process {left[0]} cannot be killed")
                break
        code = self.mpirun.wait()
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:  # ranks that outlived mpirun became children of this process
                pass
        except ChildProcessError:
            pass
        for rank in self.ranks:
            for segment in glob.glob(f"/dev/shm/zero-{rank}-*"):
                os.remove(segment)
        self.scratch.clear()
        self.shared.clear()
        return code if code >= 0 else 128 - code
