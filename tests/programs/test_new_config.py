"""zero_config: the answers by flags and on a terminal, refusals, and configurations that fit their data.

usage: test_new_config.py BIN TESTS_DATA [-k NAME]
"""
import os
import pty
import re
import select
import signal
import subprocess
import time

from test_plan import run_in_places


def check_config_without_a_terminal(place):
    error = place.run("zero_config", "--data", "tokens.bin", "--out", "new.toml", code=2).stderr
    assert "--model (and --tokenizer for a preset and texts)" in error and "--data" not in error.split("give ")[1], error
    with open(place.path("corpus.txt"), "w") as file:
        file.write("words " * 40)
    error = place.run("zero_config", "--model", "llama-tiny", "--data", "corpus.txt", "--out", "new.toml", code=2).stderr
    assert "give --tokenizer on the command line" in error, error
    assert "the nearest is llama-110m" in place.run("zero_config", "--model", "llama-110", "--data", "tokens.bin", "--out", "new.toml", code=2).stderr
    assert not os.path.exists(place.path("new.toml"))
    for words, said in [(["--model", "no/model", "--data", "tokens.bin", "--out", "new.toml"], "zero_fetch"), (["--model", "llama-tiny", "--data", "none.bin", "--out", "new.toml"], "is no file"),
                        (["--model", "llama-tiny", "--data", "tokens.bin", "--out", "config.toml"], "exists")]:
        error = place.run("zero_config", *words, code=2).stderr
        assert said in error, (words, error)
    said = place.run("zero_config", "--model", "llama-tiny", "--data", "tokens.bin", "--machine", "h100-node", "--nodes", "4", "--slurm", "--out", "gpu.toml").stdout
    # The job's folder is not the project's, so the command names the program: of GPUs that of their own build.
    assert re.search(r"ZERO_TRAIN=/\S*/build/cuda/bin/zero_train sbatch -N 4 --ntasks-per-node=8 --gpus-per-node=8 \S*/examples/slurm.sbatch gpu.toml", said), said
    with open(place.path("hosts"), "w") as file:
        file.write("# nodes\nn1 slots=8\nn2 slots=8\nn2\n")
    words = ["--model", "llama-tiny", "--data", "tokens.bin", "--machine", "mi300x-node", "--out", "hosts.toml", "--hostfile"]
    assert "hosts: names 2 nodes, and --nodes is 3" in place.run("zero_config", *words, "hosts", "--nodes", "3", code=2).stderr
    assert "is no file that can be read" in place.run("zero_config", *words, "nothere", code=2).stderr
    said = place.run("zero_config", *words, "hosts").stdout  # the file has the number of nodes
    assert "2 nodes" in said and "scripts/train hosts.toml --hostfile hosts --map-by ppr:8:node -np 16\n" in said and "note: zero has no backend for this GPU" in said, said


def check_what_is_written_can_be_trained(place):
    """The data decide: a tokenizer that fits, pairs for preferences, packed conversations. The rest is refused before planning."""
    model, trl = os.path.join(place.data, "preferences", "model"), os.path.join(place.data, "preferences")
    base = ["--machine", "here", "--ranks-per-node", "1", "--no-measure", "--output-dir", "out"]
    for file, words, lacks in (("texts.jsonl", 'method = "dpo"', "packing"), ("judged.jsonl", 'method = "kto"', "packing"), ("gsm8k.jsonl", "packing = true", "[preference]")):
        data = os.path.join(trl if file != "gsm8k.jsonl" else os.path.join(place.data, "smollm2"), file)
        extra = ["--set", "data.chat_template=chatml"] if file == "gsm8k.jsonl" else []
        place.run("zero_config", "--model", model, "--data", data, *base, *extra, "--out", file + ".toml")
        with open(place.path(file + ".toml")) as written:
            text = written.read()
        assert words in text and lacks not in text and "warmup_ratio = 0.03" in text, text
    both = ",".join(os.path.join(place.data, *names) for names in (("smollm2", "gsm8k.jsonl"), ("preferences", "texts.jsonl")))
    error = place.run("zero_config", "--model", model, "--data", both, *base, "--set", "data.chat_template=chatml", "--out", "both.toml", code=2).stderr
    assert "texts.jsonl:1" in error and "pair" in error, error
    words = os.path.join(place.data, "..", "..", "examples", "data", "kjv.txt")
    tokenizer = os.path.join(place.data, "tinyllama-chat", "tokenizer.model")
    # A preset with fewer ids than the tokenizer gets as many, unless the user says otherwise.
    said = place.run("zero_config", "--model", "llama-tiny", "--data", words, "--tokenizer", tokenizer, *base, "--out", "ids.toml").stdout
    with open(place.path("ids.toml")) as written:
        text = written.read()
    assert "vocab_size = 32000" in text and re.search(r"data: 10\d\d rows of 1024 tokens: 1000 steps of 32 rows, 30 epochs", said), (said, text)
    place.run("zero_config", "--model", "llama-tiny", "--data", "tokens.bin", *base, "--set", "model.vocab_size=640", "--set", "model.rope_theta=5e4", "--out", "fields.toml")
    with open(place.path("fields.toml")) as written:
        text = written.read()
    assert "vocab_size = 640" in text and "rope_theta = 50000.0" in text, text
    assert len(place.train("fields.toml", 1, "--set", "training.steps=2", "--set", "lr_scheduler.warmup_steps=0", "--set", "training.seq_len=32", "--set", "training.global_batch_size=1")) == 2
    for more, said in [(["--model", "llama-tiny", "--data", words, "--tokenizer", tokenizer, "--set", "model.vocab_size=512"], "vocab_size is 512"),
                       (["--model", "llama-15m", "--data", words], "give --tokenizer"),
                       (["--model", "llama-15m", "--data", words, "--tokenizer", "nothing"], "does not exist"),
                       (["--model", "llama-tiny", "--data", "tokens.bin", "--seq-len", "100000"], "--seq-len 100000: the model's context is"),
                       (["--model", "llama-tiny", "--data", "tokens.bin", "--out", "no/x.toml"], "--out no/x.toml: the folder no is not there")]:
        out = [] if "--out" in more else ["--out", "x.toml"]
        error = place.run("zero_config", *more, *base, *out, code=2).stderr
        assert said in error, (more, error)
    assert "--write no/x.toml: the folder no" in place.run("zero_plan", "config.toml", "--no-measure", "--write", "no/x.toml", code=2).stderr
    assert "nothing was measured (--no-measure)" in place.run("zero_plan", "llama-tiny", "--no-measure", "--ranks-per-node", "1").stdout


def check_few_rows(place):
    """What the user leaves open fits the data; what the run would refuse is refused."""
    base = ["--model", "llama-tiny", "--machine", "here", "--ranks-per-node", "2", "--no-measure", "--output-dir", "out"]
    with open(place.path("few.bin"), "wb") as file:
        file.write(bytes(i % 200 if i % 2 == 0 else 0 for i in range(2 * 700)))
    said = place.run("zero_config", *base, "--data", "few.bin", "--out", "few.toml").stdout
    assert "the data have no row of 1024 tokens; training.seq_len is 512" in said and "data: 1 row of 512 tokens: 1000 steps of 2 rows" in said, said
    assert "note: each row is seen 2000 times, which a model may learn by heart" in said, said
    error = place.run("zero_config", *base, "--data", "few.bin", "--seq-len", "1024", "--out", "never.toml", code=2).stderr
    assert "few.bin has 700 tokens, too few for one row" in error, error
    said = place.run("zero_config", *base, "--data", "few.bin", "--seq-len", "16", "--steps", "4", "--out", "short.toml").stdout
    assert "data: 43 rows of 16 tokens: 4 steps of 4 rows, 0.37 epochs" in said, said
    assert "note: 4 steps change a model little" in said and "each row is seen" not in said, said
    assert len(place.train("short.toml", 2)) == 4
    # Ids are counted without a folder for temporary files.
    place.run("zero_config", *base, "--data", "few.bin", "--seq-len", "16", "--steps", "4", "--out", "ids.toml", TMPDIR=place.path("nowhere"))
    # Rows of preferences end with the longest pair, so that the plan is of such rows.
    model, pairs = (os.path.join(place.data, "preferences", name) for name in ("model", "texts.jsonl"))
    said = place.run("zero_config", "--model", model, "--data", pairs, *base[2:], "--out", "pairs.toml").stdout
    rows = re.search(r"training.seq_len is (\d+), for each of the two answers of a row\ndata: (\d+) rows of at most (\d+) tokens, (\d+) on average", said)
    assert rows and int(rows[3]) == 2 * int(rows[1]) and int(rows[1]) % 64 == 0 and int(rows[4]) < int(rows[3]), said
    with open(place.path("pairs.toml")) as file:
        assert f"seq_len = {rows[1]}" in file.read()
    # The run has the rows that were told, whatever held them: pairs, judged answers, packed conversations and others.
    judged, chats = (os.path.join(place.data, *names) for names in (("preferences", "judged.jsonl"), ("smollm2", "gsm8k.jsonl")))
    template = ["--set", "data.chat_template=chatml"]
    for i, (data, more, length) in enumerate(((pairs, [], None), (judged, [], None), (chats, template, 512), (chats, [*template, "--set", "data.packing=false"], None),
                                              (chats, [*template, "--set", "data.packing=false", "--set", "training.validation_interval=2", "--set", f'data.validation=["{chats}"]'], 512))):
        said = place.run("zero_config", "--model", model, "--data", data, *base[2:], *more, "--out", f"rows{i}.toml").stdout
        line = next(line for line in said.splitlines() if line.startswith("data: "))
        assert place.run("zero_train", f"rows{i}.toml", "--dry-run", "--ranks", "2").stdout.endswith(line + "\n"), (data, more, line)
        with open(place.path(f"rows{i}.toml")) as file:
            seq_len = int(re.search(r"seq_len = (\d+)", file.read())[1])
        assert seq_len == length if length else seq_len < 512, (data, more, seq_len)
    error = place.run("zero_config", *base, "--data", "few.bin", "--seq-len", "16", "--set", "training.epochs=1", "--set", "lr_scheduler.warmup_steps=50", "--out", "never.toml", code=2).stderr
    assert "--set lr_scheduler.warmup_steps=50: must not exceed the run's 10 steps (43 rows of 16 tokens: 10 steps of 4 rows, " in error, error
    # The dry run counts them too.
    said = place.run("zero_train", "short.toml", "--dry-run", "--ranks", "2").stdout
    assert said.endswith("data: 43 rows of 16 tokens: 4 steps of 4 rows, 0.37 epochs\n"), said
    error = place.run("zero_train", "short.toml", "--dry-run", "--ranks", "2", "--set", "training.seq_len=1024", code=2).stderr
    assert "too few for one row" in error, error
    assert not os.path.exists(place.path("never.toml"))
    # Without weights and a tokenizer nothing is counted, and the estimate is printed.
    with open(place.path("corpus.txt"), "w") as file:
        file.write("words " * 400)
    said = place.run("zero_train", "config.toml", "--dry-run", "--set", "model.path=model/config.json", "--set", 'data.train=["corpus.txt"]').stdout
    assert "data: " not in said and "optimizer: " in said, said


def check_other_machines(place):
    """Folders for output are looked at where the run is. A command to look first is printed for this machine."""
    words = ["--model", "llama-tiny", "--data", "tokens.bin", "--no-measure", "--set", "training.seq_len=32", "--set", "offload.nvme_dir=/not/here/x", "--set", "offload.optimizer=nvme"]
    said = place.run("zero_config", *words, "--machine", "h100-node", "--out", "gpu.toml").stdout
    assert "--dry-run" not in said, said
    assert "only the last folder of the path is made" in place.run("zero_config", *words, "--machine", "here", "--out", "here.toml", code=2).stderr
    said = place.run("zero_config", *words[:-4], "--ranks-per-node", "2", "--machine", "here", "--set", "parallel.context=2", "--out", "two.toml").stdout
    command = said[said.index("or look at it first:\n") :].splitlines()[1].split()
    assert command[1:] == ["two.toml", "--dry-run", "--ranks", "2"], command
    assert "rows of 32 tokens" in subprocess.run(command, cwd=place.folder, capture_output=True, text=True, env=place.environment, check=True).stdout
    # The examples of a preview depend on no layout.
    tokenizer, rows = (os.path.join(place.data, *names) for names in (("preferences", "model"), ("smollm2", "gsm8k.jsonl")))
    preview = ["--preview", "1", "--set", f"data.tokenizer={tokenizer}", "--set", f'data.train=["{rows}"]', "--set", "model.vocab_size=400", "--set", "data.chat_template=chatml"]
    shown = place.run("zero_train", "two.toml", *preview, "--set", "parallel.context=1").stdout
    assert shown
    for layout in ("parallel.context=2", "parallel.pipeline=8", "zero.shard_degree=4"):
        assert place.run("zero_train", "two.toml", *preview, "--set", layout).stdout == shown, layout
    said = place.run("zero_plan", "llama-tiny", "--nodes", "2", "--ranks-per-node", "1", "--link", "10Gbps", "--no-measure").stdout
    assert "10 Gbit/s" in said or "1.25 GB/s" in said, said


def drive(place, words, answers):
    """Runs a program on a pseudo-terminal and answers each question when it stands there. Returns (exit code, all that was said)."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(place.folder)
        os.execvpe(os.path.join(place.bin, words[0]), words, place.environment)
    said, waiting = "", list(answers)
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        if not select.select([terminal], [], [], 1)[0]:
            continue
        try:
            part = os.read(terminal, 4096).decode(errors="replace")
        except OSError:  # the program ended
            break
        if not part:
            break
        said += part
        if waiting and waiting[0][0] in said:
            os.write(terminal, (waiting.pop(0)[1] + "\n").encode())
            said += "\n"
    if time.monotonic() >= deadline:
        os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said


def check_questions_on_a_terminal(place):
    code, said = drive(place, ["zero_config", "--ranks-per-node", "2", "--steps", "2", "--seq-len", "32", "--global-batch", "4", "--no-measure", "--output-dir", "out", "--out", "new.toml"],
                       [("Model: ", "no/such"), ("zero_fetch", "llama-tiny"), ("Data: ", "~/none.bin"), (os.environ.get("HOME", "") + "/none.bin: is no file", "tokens.bin"), ("Machine: ", "")])
    assert code == 0 and "wrote new.toml" in said and "scripts/train new.toml -np 2" in said, (code, said)
    with open(place.path("new.toml")) as file:
        text = file.read()
    assert "# States that are sharded over the ranks." in text and "\n[training]\n" in text, text
    assert len(place.train("new.toml", 2)) == 2


if __name__ == "__main__":
    run_in_places(globals(), __doc__)
