"""States that a run saved elsewhere when its disk was full: zero_train --resume moves them home, and touches nothing of other people.

usage: test_spare_states.py BIN TESTS_DATA [-k NAME]        exits 1 when something is wrong
"""
import errno
import glob
import os
import shutil
import sys

from checks import arguments, run_checks
from test_checkpoints import Place

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "soak"))
from faults import failing_calls

STEPS = ("--set", "training.steps=12", "--set", "checkpoint.interval=4", "--set", "checkpoint.keep=3")
RESUME = (*STEPS, "--resume")
STRANGER = 54321


def begin(place, home=(4,), **spare):
    """A run whose checkpoints of the steps `home` are in its folder, and the others' in spare folders of these names."""
    shutil.rmtree(place.path("out"), ignore_errors=True)
    code, said = place.run(*STEPS)
    assert code == 0, said
    shutil.rmtree(place.path("out/model"))
    for name, step in spare.items():
        os.makedirs(place.path("zero-checkpoint-" + name))
        shutil.copytree(place.path(f"out/checkpoints/step-{step:08d}"), place.path(f"zero-checkpoint-{name}/step-{step:08d}"))
    for step in {4, 8, 12}.difference(home):
        shutil.rmtree(place.path(f"out/checkpoints/step-{step:08d}"))


def spare(place):
    return sorted(os.path.relpath(path, place.folder) for path in glob.glob(place.path("zero-checkpoint-*/*")))


def expect_resumed(place, step, *options):
    code, said = place.run(*RESUME, *options)
    assert code == 0 and f"resumed after step {step}," in said, (code, said)
    place.expect_same("out", "undisturbed")
    return said


def undisturbed(place):
    code, said = place.run(*STEPS, out="undisturbed")
    assert code == 0, said


def check_goes_home(place, args):
    """The newest goes home and the older ones go; what belongs to other runs stays."""
    undisturbed(place)
    begin(place, abc=8, xyz=12)
    shutil.copytree(place.path("undisturbed/checkpoints/step-00000012"), place.path("zero-checkpoint-other/step-00000012"))
    code, said = place.run(*RESUME, "--dry-run")
    assert code == 0 and f"the checkpoint of step 12; the run moves it from {place.folder}/zero-checkpoint-xyz to out/checkpoints\n" in said, said
    assert len(spare(place)) == 3 and place.checkpoints() == ["step-00000004"], spare(place)
    said = expect_resumed(place, 12)
    assert f"{place.folder}/zero-checkpoint-xyz/step-00000012 is now out/checkpoints/step-00000012" in said, said
    assert spare(place) == ["zero-checkpoint-other/step-00000012"] and not os.path.exists(place.path("zero-checkpoint-xyz")), spare(place)
    assert place.checkpoints() == ["step-00000004", "step-00000012"], place.checkpoints()
    # one that is as new as what is at home goes too, but only where that is whole
    begin(place, home=(4, 8), abc=8)
    flip(place.path("out/checkpoints/step-00000008/rank-00001.states"))
    assert "is now out/checkpoints/step-00000008" in expect_resumed(place, 8)
    begin(place, home=(4, 8), abc=8, old=4)
    assert " is now " not in expect_resumed(place, 8) and spare(place) == ["zero-checkpoint-other/step-00000012"], spare(place)
    # without any at home
    begin(place, home=(), abc=8)
    shutil.rmtree(place.path("out/checkpoints"))
    expect_resumed(place, 8)


def check_another_run(place, args):
    """A run that begins in the folder of another one takes over none of its states, nor does a copy of the folder."""
    begin(place, abc=12)
    code, said = place.run(*STEPS, "--overwrite")
    assert code == 0, said
    for step in (8, 12):
        shutil.rmtree(place.path(f"out/checkpoints/step-{step:08d}"))
    code, said = place.run(*RESUME)
    assert code == 0 and "resumed after step 4," in said and spare(place) == ["zero-checkpoint-abc/step-00000012"], said
    shutil.rmtree(place.path("zero-checkpoint-abc"))
    begin(place, abc=12)
    shutil.copytree(place.path("out"), place.path("copy"))
    code, said = place.run(*RESUME, out="copy")
    assert code == 0 and "resumed after step 4," in said and spare(place) == ["zero-checkpoint-abc/step-00000012"], said
    assert "zero-checkpoint-abc/step-00000012: holds states of step 12 of this run or of a copy of it" in said and "zero_export" in said, said


def check_moved_run(place, args):
    """The directory of a run is moved, as to a larger disk: its states find it there."""
    undisturbed(place)
    begin(place, abc=12)
    os.rename(place.path("out"), place.path("moved"))
    code, said = place.run(*RESUME, out="moved")
    assert code == 0 and "resumed after step 12," in said and not spare(place), (code, said)
    place.expect_same("moved", "undisturbed")


def flip(path):
    with open(path, "r+b") as file:
        byte = file.read(1)[0]
        file.seek(0)
        file.write(bytes([byte ^ 16]))


def check_damage(place, args):
    """A damaged one stays where it is, and the one before it is taken; nothing older is removed before that one has verified."""
    undisturbed(place)
    for harm in ("flip", "cut", "manifest", "lost"):
        begin(place, abc=8, xyz=12)
        states = place.path("zero-checkpoint-xyz/step-00000012/rank-00000.states")
        if harm == "flip":
            flip(states)
        elif harm == "cut":
            os.truncate(states, os.path.getsize(states) - 4096)
        elif harm == "lost":
            os.remove(states)
        else:
            flip(place.path("zero-checkpoint-xyz/step-00000012/manifest.json"))
        said = expect_resumed(place, 8)
        assert "zero-checkpoint-xyz/step-00000012" in said and "zero-checkpoint-abc/step-00000008 is now" in said, (harm, said)
        assert spare(place) == ["zero-checkpoint-xyz/step-00000012"] and place.checkpoints() == ["step-00000004", "step-00000008", "step-00000012"], (harm, spare(place))
        shutil.rmtree(place.path("zero-checkpoint-xyz"))
        shutil.rmtree(place.path("out"))


def times_below(folder):
    """When each file and folder changed last, links not followed."""
    paths = [folder] + [os.path.join(base, name) for base, folders, names in os.walk(folder) for name in folders + names]
    return sorted((path, os.lstat(path).st_mtime_ns) for path in paths)


def check_other_people(place, args):
    """In a place that is open to everybody: nothing of somebody else's is opened, no link is followed, and what is no file lets go."""
    undisturbed(place)
    begin(place, abc=12)
    folder, step = place.path("zero-checkpoint-abc"), place.path("zero-checkpoint-abc/step-00000012")
    states, manifest = step + "/rank-00000.states", step + "/manifest.json"

    def replaced(path, make):
        os.rename(path, place.path("kept"))
        make(path)
        return lambda: (shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.remove(path), os.rename(place.path("kept"), path))

    def owned_by(path, user):
        os.chown(path, user, -1)
        return lambda: os.chown(path, os.getuid(), -1)

    def opened(path, mode_then):
        mode = os.stat(path).st_mode
        os.chmod(path, mode_then)
        return lambda: os.chmod(path, mode)

    harms = [lambda path=path: replaced(path, lambda name: os.symlink(place.path("kept"), name)) for path in (folder, step, manifest, states)]
    harms += [lambda path=path: replaced(path, os.mkfifo) for path in (folder, step, manifest, states)]
    harms += [lambda path=path: replaced(path, lambda name: os.symlink("/dev/zero", name)) for path in (manifest, states)]
    harms += [lambda path=path: replaced(path, os.mkdir) for path in (manifest, states)]
    harms += [lambda path=path, mode=mode: opened(path, mode) for path in (folder, step) for mode in (0o777, 0o775)]
    if os.getuid() == 0:
        harms += [lambda path=path: owned_by(path, STRANGER) for path in (folder, step, manifest, states)]
    for number, harm in enumerate(harms):
        mend = harm()
        before = times_below(folder)
        code, said = place.run(*RESUME)
        assert code == 0 and "resumed after step 4," in said and " is now " not in said, (number, code, said)
        assert before == times_below(folder), number
        mend()
        for name in ("model", "checkpoints/step-00000008", "checkpoints/step-00000012"):
            shutil.rmtree(place.path("out", name))
    expect_resumed(place, 12)  # with nothing wrong it is taken


def check_no_answer(place, args):
    """Where the system cannot say what is there, or the copy cannot be written, the run is refused: nothing is lost, and the next start finds it."""
    undisturbed(place)
    begin(place, abc=12)
    home = place.checkpoints()
    for below, calls, reason in (("zero-checkpoint-abc", "look", errno.ESTALE), ("zero-checkpoint-abc", "list", errno.EIO), ("zero-checkpoint-abc", "open", errno.EMFILE),
                                 ("zero-checkpoint-abc", "read", errno.EIO), ("out/checkpoints/step-00000012.tmp", "write", errno.ENOSPC),
                                 ("out/checkpoints/step-00000012.tmp", "sync", errno.EIO)):
        failing = failing_calls(place.folder, below=place.path(below), one_in=1, reason=reason, calls=calls)
        os.environ.update(failing)
        try:
            code, said = place.run(*RESUME)
        finally:
            for name in failing:
                del os.environ[name]
        assert code == 2 and os.strerror(reason) in said and said.count("error: ") == 1 and "zero-checkpoint-abc" in said, (below, calls, code, said)
        assert place.checkpoints() == home and spare(place) == ["zero-checkpoint-abc/step-00000012"], (calls, place.checkpoints(), spare(place))
    expect_resumed(place, 12)


def main():
    args = arguments(__doc__)
    run_checks(args, globals(), lambda check, folder: check(Place(folder, args.bin, args.data), args))


if __name__ == "__main__":
    main()
