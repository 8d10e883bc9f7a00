"""What the tests of programs share: a folder to run in, how a run is started, and the loop over a file's checks."""
import argparse
import array
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import traceback


# Of a line of metrics.jsonl: what no two runs share.
PARTS = ("products", "attention", "kernels", "gathers", "sums", "disk", "data", "ranks", "other")
UNLIKE = ("seconds", "tokens_per_second", "peak_bytes", "time", "host_available_bytes", "host_used_bytes", "load_average", "step_seconds", "slowest_rank",
          *("step_" + part for part in PARTS), *("slowest_" + part for part in PARTS))


def mpirun(ranks):
    """The beginning of a command that starts so many ranks, on any machine, root or not."""
    return ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", str(ranks)] + (["--allow-run-as-root"] if os.getuid() == 0 else [])


def environment(**more):
    return {**os.environ, "OMP_NUM_THREADS": "1", **more}


def mount_apart():
    """Begins the program anew where it may mount file systems that nobody else sees. Ends it with 77 where none can be."""
    if "ZERO_OWN_MOUNTS" in os.environ:
        return
    own = ["unshare", "--mount"] + ([] if os.getuid() == 0 else ["--user", "--map-root-user"])
    if subprocess.run(own + ["sh", "-c", "mount -t tmpfs none /mnt"], capture_output=True).returncode != 0:
        print("skipped: no file system can be mounted here")
        sys.exit(77)
    os.execvpe(own[0], own + [sys.executable, *sys.argv], dict(os.environ, ZERO_OWN_MOUNTS="1"))


def read_safetensors(path):
    """{name: (type, shape, numbers)}."""
    kinds = {"F32": "f", "F64": "d", "I64": "q"}
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    header.pop("__metadata__", None)
    return {name: (t["dtype"], t["shape"], array.array(kinds[t["dtype"]], data[slice(*t["data_offsets"])])) for name, t in header.items()}


def compare(found_path, expected_path, tolerance):
    """All names, and no number farther away than this share of its tensor's largest one."""
    found, expected = read_safetensors(found_path), read_safetensors(expected_path)
    assert sorted(found) == sorted(expected), sorted(set(found) ^ set(expected))
    for name, (_, shape, values) in expected.items():
        assert found[name][1] == shape, (name, found[name][1], shape)
        far = max((abs(a - b) for a, b in zip(found[name][2], values)), default=0)
        assert far <= tolerance * max(map(abs, values), default=0), (name, far, max(map(abs, values)))


class ModelPlace:
    """A folder with a small model, its tokens and a configuration."""

    def __init__(self, folder, bin, data, sections):
        self.folder, self.bin, self.data = folder, bin, data
        shutil.copytree(os.path.join(data, "tiny", "model"), self.path("model"))
        shutil.copy(os.path.join(data, "tiny", "tokens.bin"), self.path("tokens.bin"))
        self.config(sections)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def config(self, sections, extra="", name="config.toml"):
        with open(self.path(name), "w") as file:
            for section, keys in sections.items():
                file.write(f"[{section}]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in keys.items()))
            file.write(extra)


def arguments(description, **numbers):
    """BIN TESTS_DATA [-k NAME], of which the paths are absolute, and an option for each number with its default."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=os.path.abspath)
    parser.add_argument("data", type=os.path.abspath)
    parser.add_argument("-k", default="", help="only checks whose name holds this")
    for name, default in numbers.items():
        parser.add_argument("--" + name, type=int, default=default)
    return parser.parse_args()


def processor_seconds():
    """Of this process and of its children that have ended."""
    return sum(os.times()[:4])


def run_checks(args, names, run):
    """Calls run(check, folder) for the functions check_* of `names` (a file's globals()) in their order, each with a folder of its
    own, and ends the program: with 1 when one failed, or none was chosen."""
    checks = [check for name, check in names.items() if name.startswith("check_") and args.k in name]
    failed = 0
    for check in checks:
        begin, used = time.time(), processor_seconds()
        try:
            with tempfile.TemporaryDirectory(prefix="zero-check-") as folder:
                run(check, folder)
            print(f"{check.__name__} ok, {time.time() - begin:.1f} s, {processor_seconds() - used:.1f} s of processors", flush=True)
        except Exception:
            failed += 1
            print(f"{check.__name__} failed:\n{traceback.format_exc()}", flush=True)
    print(f"{len(checks)} checks, {failed} failed")
    sys.exit(failed > 0 or not checks)
