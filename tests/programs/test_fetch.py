"""Runs zero_fetch against a hub of its own (fake_hub.py): whole fetches, faults of the network and of the hub, wrong contents, kills,
full disks, two at once. No file may ever have its name before it is complete, and the token may reach the hub alone.

usage: test_fetch.py BIN TESTS_DATA [-k NAME]        exits 1 when something is wrong
"""
import os
import pty
import re
import shutil
import signal
import ssl
import subprocess
import time

from checks import arguments, run_checks
from fake_hub import Fault, Repository, content_hash, entries_of
from fetch_place import FILES, MODEL, OTHERS, TOKEN, Place, files_in, noise, own, wait_until


def check_model_into_a_folder(place):
    """The default files, all of the commit that main was at the start, each once; a second run fetches nothing."""
    repository = place.hub.repositories[MODEL]
    commit = repository.branches["main"]
    place.hub.after_revision = lambda: repository.commit({"config.json": b"newer"})
    folder, said = place.fetched("own-er/small", "--to", "there")
    place.hub.after_revision = lambda: None
    assert folder == place.path("there") and files_in(folder) == FILES and commit in said, (files_in(folder).keys(), said)
    assert place.hub.paths("/resolve/")[-1].endswith("/config.json"), "a folder is a model when all is there"
    assert all(commit in path for path in place.hub.paths("/resolve/")) and not place.hub.paths("pytorch_model|consolidated"), place.hub.paths()
    before = len(place.hub.paths("/resolve/"))
    place.fetched(f"own-er/small@{commit}", "--to", "there/")
    assert len(place.hub.paths("/resolve/")) == before, "complete files are fetched again"


def check_cache(place):
    """The layout of huggingface_hub, found by its variables."""
    commit = place.hub.repositories[MODEL].branches["main"]
    for variables, root in (({}, "home/.cache/huggingface/hub"), ({"HF_HOME": place.path("hf")}, "hf/hub"), ({"HF_HUB_CACHE": place.path("c")}, "c")):
        folder, _ = place.fetched("own-er/small", **variables)
        root = place.path(root, "models--own-er--small")
        assert folder == f"{root}/snapshots/{commit}" and files_in(folder) == FILES, folder
        with open(f"{root}/refs/main") as ref:
            assert ref.read() == commit
        assert os.readlink(f"{folder}/config.json") == "../../blobs/" + content_hash(FILES["config.json"])
        assert os.path.realpath(f"{folder}/additional_chat_templates/tool use.jinja").startswith(root + "/blobs/")
        assert sorted(os.listdir(root + "/blobs")) == sorted({content_hash(content) for content in FILES.values()})
    before = len(place.hub.paths("/resolve/"))
    place.fetched("own-er/small", HF_HUB_CACHE=place.path("c"))
    assert len(place.hub.paths("/resolve/")) == before
    newer = place.hub.repositories[MODEL].commit({**FILES, "config.json": b"{}"}, branch="refs/pr/1")
    folder, _ = place.fetched("own-er/small@refs/pr/1", HF_HUB_CACHE=place.path("c"))
    assert folder.endswith(newer) and files_in(folder)["config.json"] == b"{}" and len(place.hub.paths("/resolve/")) == before
    with open(place.path("c/models--own-er--small/refs/refs/pr/1")) as ref:
        assert ref.read() == newer
    blob = os.path.realpath(folder + "/tokenizer.json")
    with open(blob, "wb") as file:
        file.write(b"cut short")
    _, said = place.fetched("own-er/small@refs/pr/1", HF_HUB_CACHE=place.path("c"))
    assert files_in(folder)["tokenizer.json"] == FILES["tokenizer.json"] and "has another size" in said, said


def check_opened(place):
    """The printed folder is one that zero_train opens, in the cache and elsewhere."""
    place.hub.repositories["models/tiny/model"] = Repository(files_in(os.path.join(place.data, "tiny", "model")))
    shutil.copy(os.path.join(place.data, "tiny", "tokens.bin"), place.folder)
    for words in ([], ["--to", "there"]):
        folder, _ = place.fetched("tiny/model", *words)
        with open(place.path("config.toml"), "w") as file:
            file.write(f'[job]\noutput_dir = "out"\n[model]\npath = "{folder}"\n[data]\ntrain = ["tokens.bin"]\n[training]\nsteps = 1\nseq_len = 16\n')
        done = subprocess.run([os.path.join(place.bin, "zero_train"), "config.toml", "--dry-run"], cwd=place.folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def check_dataset_and_names(place):
    """All files of a data set, over several pages of the listing, with names that addresses must escape."""
    files = {f"data/part {i}.jsonl": b'{"text": "%d"}\n' % i for i in range(23)}
    files.update({"a#b?c%20&d.txt": noise(2000), "später/ü.txt": b"x", "empty": b"", "deep/er/and/deeper.bin": noise(1500), ".gitattributes": b"x"})
    place.hub.repositories["datasets/some/texts"], place.hub.page = Repository(files), 5
    folder, _ = place.fetched("some/texts", "--dataset", "--to", "texts")
    assert files_in(folder) == {name: content for name, content in files.items() if name != ".gitattributes"}, files_in(folder).keys()
    assert len(place.hub.paths("/tree/")) == 7, place.hub.paths("/tree/")
    folder, _ = place.fetched("some/texts", "--dataset")
    assert "/datasets--some--texts/snapshots/" in folder and len(files_in(folder)) == len(files) - 1
    folder, _ = place.fetched("some/texts", "--dataset", "--to", "few", "--include", "data/", "--include", "*.txt", "--exclude", "*1*")
    assert sorted(files_in(folder)) == sorted(name for name in files if (name.startswith("data/") or name.endswith(".txt")) and "1" not in name)
    place.refused(2, ["none of its 28 files", "--include"], "some/texts", "--dataset", "--to", "none", "--include", "*.parquet")
    assert not os.path.exists(place.path("none"))


def check_forms_of_weights(place):
    """Weights once, in a form that zero opens; others only by --include."""
    kept = {"config.json": b"{}", "model.safetensors": noise(2000)}
    place.hub.repositories["models/a/both"] = Repository({**FILES, **kept, "model.fp16.safetensors": noise(1000)})
    folder, _ = place.fetched("a/both", "--to", "both")
    assert "model.safetensors" in files_in(folder) and not [name for name in files_in(folder) if "-of-" in name or "fp16" in name or "index" in name]
    place.hub.repositories["models/a/adapter"] = Repository({"adapter_config.json": b"{}", "adapter_model.safetensors": noise(2000)})
    assert sorted(files_in(place.fetched("a/adapter", "--to", "adapter")[0])) == ["adapter_config.json", "adapter_model.safetensors"]
    place.hub.repositories["models/a/gguf"] = Repository({"README.md": b"x", **{f"small-Q{i}.gguf": noise(2000, i) for i in range(8)}})
    place.refused(2, ["no model.safetensors", "small-Q0.gguf", "3 more", "--include"], "a/gguf", "--to", "gguf")
    assert list(files_in(place.fetched("a/gguf", "--to", "gguf", "--include", "*Q4.gguf")[0])) == ["small-Q4.gguf"]


def check_cut_connections(place):
    """It goes on from where the connection was cut, in this process and in the next."""
    large = "/" + content_hash(FILES["model-00001-of-00002.safetensors"])
    place.hub.faults = [Fault(large, cut=100_000), Fault(large, cut=50_000), Fault(large, stall=20_000)]
    folder, said = place.fetched("own-er/small", "--to", "there")
    assert files_in(folder) == FILES and not own(folder), own(folder)
    assert [seen["range"] for seen in place.hub.requests if seen["path"].startswith(large)] == [None, "bytes=100000-", "bytes=150000-", "bytes=170000-"], said
    assert said.count("warning: ") == 3 and "Signature" not in said, said

    place.hub.faults, place.hub.requests = [Fault(large, cut=100_000, times=2)], []
    said = place.refused(1, ["model-00001-of-00002.safetensors", "after 2 tries", "run the same command again"], "own-er/small", "--to", "again", "--retries", "1")
    assert "model-00001-of-00002.safetensors" not in files_in(place.path("again")) and len(own(place.path("again"))) == 1
    place.hub.faults = []
    folder, said = place.fetched("own-er/small", "--to", "again")
    assert files_in(folder) == FILES and "goes on from" in said and place.hub.requests[-4]["range"] is None, said
    assert "bytes=200000-" in [seen["range"] for seen in place.hub.requests]


def check_servers_without_ranges(place):
    """A server that ignores the range, or knows of none at this byte: the file begins anew."""
    large = "/" + content_hash(FILES["model-00001-of-00002.safetensors"])
    place.hub.faults = [Fault(large, cut=100_000), Fault(large, no_ranges=True)]
    assert files_in(place.fetched("own-er/small", "--to", "one")[0]) == FILES
    place.hub.faults = [Fault(large, cut=100_000), Fault(large, status=416)]
    place.hub.requests = []
    assert files_in(place.fetched("own-er/small", "--to", "two")[0]) == FILES
    assert [seen["range"] for seen in place.hub.requests if seen["path"].startswith(large)] == [None, "bytes=100000-", None]
    place.hub.faults = [Fault(large, content=FILES["model-00001-of-00002.safetensors"][:1000], times=9)]
    place.refused(1, ["ends at byte 1000 of 300000"], "own-er/small", "--to", "three", "--retries", "1")
    place.hub.faults = [Fault(large, content=noise(300_001))]
    place.refused(1, ["more than the 300000 bytes"], "own-er/small", "--to", "four")
    assert "model-00001-of-00002.safetensors" not in files_in(place.path("four"))


def check_token(place):
    """The hub sees it with every request, nobody else does."""
    def seen(host):
        return {request["authorization"] for request in place.hub.requests if request["host"] == host}

    place.hub.repositories[MODEL].private = True
    os.makedirs(place.path("hf"))
    with open(place.path("hf/token"), "w") as file:
        file.write(TOKEN + "\n")
    for number, variables in enumerate(({"HF_TOKEN": TOKEN}, {"HUGGING_FACE_HUB_TOKEN": TOKEN}, {"HF_HOME": place.path("hf")}, {"HF_TOKEN_PATH": place.path("hf/token")})):
        place.hub.requests = []
        place.fetched("own-er/small", "--to", f"there{number}", **variables)
        assert seen("hub") == {f"Bearer {TOKEN}"} and seen("store") == {None}, place.hub.requests
    place.hub.faults, place.hub.requests = [Fault("/config.json", status=307, headers=[("Location", f"{place.hub.address.replace('127.0.0.1', 'localhost')}/elsewhere")])], []
    place.hub.faults.append(Fault("/revision/main", status=307, headers=[("Location", "/api/models/own-er/small/revision/main")]))  # as of a renamed one
    place.fetched("own-er/small", "--to", "there5", HF_TOKEN=TOKEN)
    assert {request["authorization"] for request in place.hub.requests if "/revision/" in request["path"]} == {f"Bearer {TOKEN}"}
    assert [request["authorization"] for request in place.hub.requests if request["path"] == "/elsewhere"] == [None]
    place.refused(2, ["holds no token"], "own-er/small", "--to", "there6", HF_TOKEN=TOKEN + "\nHost: x")


def check_refusals_of_the_hub(place):
    """Each by its reason, with exit code 2 and nothing written."""
    place.hub.repositories["models/a/gated"] = Repository(FILES, gated="Bearer nobody")
    place.hub.repositories["models/a/private"] = Repository(FILES, private=True)
    to = ("--to", "there")
    cases = [("a/gated", {}, ["is gated", f"{place.hub.address}/a/gated", "HF_TOKEN"]), ("a/gated", {"HF_TOKEN": TOKEN}, ["the token in HF_TOKEN may not read it", "ask for access at"]),
             ("a/private", {}, ["does not exist", "or is private", "HF_TOKEN"]), ("no/where", {}, ["no/where: does not exist", "--dataset"]),
             ("no/where", {"HF_TOKEN": TOKEN}, ["no/where: does not exist", "HF_TOKEN may not see it"]), ("own-er/small@v9", {}, ['own-er/small: has no revision "v9"']),
             ("own-er/small", {"HF_TOKEN": "hf_old"}, ["does not accept the token in HF_TOKEN", "settings/tokens"])]
    for name, variables, parts in cases:
        said = place.refused(2, parts, name, *to, **variables)
        assert "hf_old" not in said and not os.path.exists(place.path("there")), (name, said)
        place.refused(2, parts, name, **variables)
        assert not os.path.exists(place.path("home")), name
    place.hub.faults = [Fault("/revision/", status=404)]
    place.refused(2, 'has no revision "gone"', "own-er/small@gone", *to)
    place.hub.faults = [Fault("/tokenizer.json", status=404, headers=[("X-Error-Code", "EntryNotFound")])]
    place.refused(1, ["tokenizer.json", "no such file"], "own-er/small", *to)
    place.hub.faults = [Fault("^/[0-9a-f]{64}$", status=403, times=1)]  # a signature that is too old: the next redirect has a new one
    place.fetched("own-er/small", *to)
    place.hub.faults = [Fault("/revision/", status=403, headers=[("X-Error-Message", f"blocked here: {TOKEN}")])]
    place.refused(2, "blocked here", "own-er/small", "--to", "other", HF_TOKEN=TOKEN)


def check_busy_hub(place):
    """429 and 5xx are waited for, as long as the hub asks, and not for ever."""
    place.hub.faults = [Fault("/revision/", status=503, times=2), Fault("/tree/", status=429, headers=[("Retry-After", "2")]), Fault("/config.json", status=500),
                        Fault("/" + content_hash(FILES["tokenizer.json"]), status=502)]
    begin = time.time()
    folder, said = place.fetched("own-er/small", "--to", "there")
    assert files_in(folder) == FILES and said.count("warning: ") == 5 and "in 2.0 s" in said and time.time() - begin > 4, said
    place.hub.faults = [Fault("/revision/", status=503, times=9)]
    place.refused(1, ["status 503", "after 3 tries"], "own-er/small", "--to", "never", "--retries", "2")
    place.hub.faults = [Fault("/revision/", status=429, headers=[("Retry-After", "86400")])]
    place.refused(1, ["status 429", "asks to wait for 86400 s"], "own-er/small", "--to", "never")
    assert not os.path.exists(place.path("never"))
    place.hub.close()
    place.refused(1, ["after 2 tries"], "own-er/small", "--to", "never", "--retries", "1")


def check_wrong_contents(place):
    """Changed bytes never get a name, and damage of an earlier fetch is made good."""
    for name in ("model-00001-of-00002.safetensors", "config.json"):
        content = bytes([FILES[name][0] ^ 1]) + FILES[name][1:]
        place.hub.faults = [Fault(content_hash(FILES[name]) if len(content) > 1000 else "/config.json", content=content)]
        said = place.refused(1, [name, content_hash(content), content_hash(FILES[name]), "SHA"], "own-er/small", "--to", name)
        assert name not in files_in(place.path(name)) and not own(place.path(name)), said
    name = "model-00001-of-00002.safetensors"
    os.makedirs(place.path("damaged/.zero_fetch"))
    with open(place.path("damaged/.zero_fetch", content_hash(FILES[name]) + ".partial"), "wb") as file:
        file.write(bytes(100_000))
    folder, said = place.fetched("own-er/small", "--to", "damaged")
    assert files_in(folder) == FILES and "fetched anew" in said, said


def check_hostile_listings(place):
    """Names that lead out of the folder, and listings that are not understood."""
    sound = entries_of(FILES)
    for path, part in (("../x", '".."'), ("/tmp/x", "absolute"), ("a/../../x", '".."'), ("a//b", "empty component"), (".git/config", "git"), ("a\\..\\b", "backslash"), ("a\nb", "control"),
                       ("", "empty"), ("./config.json", '"."'), ("x" * 300, "too long")):
        place.hub.listing = sound + [{"type": "file", "oid": "0" * 40, "size": 0, "path": path}]
        place.refused(1, part, "own-er/small", "--to", "there", "--include", "*")
    for listing, part in ((sound + sound[-1:], "twice"), ({}, "no list"), ([{"type": "file", "path": "a", "oid": "../../x", "size": 3}], "without its size or hash"),
                          ([{"type": "file", "path": "a", "oid": "0" * 40, "size": -1}], "without its size or hash"), ([{"type": "file", "path": 3}], '"path"'), ([3], "no object")):
        place.hub.listing = listing
        place.refused(1, part, "own-er/small", "--to", "there", "--include", "*")
    assert os.listdir(place.folder) == [], os.listdir(place.folder)


def check_killed(place):
    """kill -9 in the middle of a file: the next run goes on from there."""
    name = "model-00001-of-00002.safetensors"
    for words, folder in ((["--to", "there"], "there/.zero_fetch"), ([], "home/.cache/huggingface/hub/models--own-er--small/blobs")):
        place.hub.faults, place.hub.requests = [Fault(content_hash(FILES[name]), rate=100_000)], []
        process = place.start("own-er/small", *words)
        wait_until(lambda: [f for f in os.listdir(place.path(folder)) if f.startswith(content_hash(FILES[name])) and os.path.getsize(place.path(folder, f)) > 50_000]
                   if os.path.isdir(place.path(folder)) else [])
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not [path for path in (f"there/{name}" if words else "", f"{folder}/{content_hash(FILES[name])}") if path and os.path.exists(place.path(path))]
        place.hub.faults = []
        found, _ = place.fetched("own-er/small", *words)
        assert files_in(place.path(found)) == FILES and not own(place.path("there"))
        ranges = [seen["range"] for seen in place.hub.requests if seen["path"].startswith("/" + content_hash(FILES[name]))]
        assert len(ranges) == 2 and int(re.fullmatch(r"bytes=(\d+)-", ranges[1])[1]) > 50_000, ranges


def check_two_at_once(place):
    """The second one waits, and fetches nothing that the first has."""
    for words in (["--to", "there"], []):
        place.hub.faults, place.hub.requests = [Fault("/" + content_hash(FILES["model-00001-of-00002.safetensors"]), rate=200_000)], []
        both = [place.start("own-er/small", *words) for _ in range(2)]
        said = []
        for process in both:
            out, words_said = process.communicate(timeout=60)
            assert process.returncode == 0 and files_in(place.path(out.strip())) == FILES, words_said
            said.append(words_said)
        assert "another fetch writes to it" in said[0] + said[1], said
        fetched = place.hub.paths("/resolve/")
        assert len(fetched) == len(set(fetched)) == len(FILES), fetched


def check_files_of_the_user(place):
    """A file that differs is kept, unless --overwrite is given."""
    os.makedirs(place.path("there"))
    with open(place.path("there/config.json"), "w") as file:
        file.write('{"model_type": "gemma"}')  # of the same size
    place.refused(2, ["there/config.json", "--overwrite"], "own-er/small", "--to", "there")
    assert files_in(place.path("there")) == {"config.json": b'{"model_type": "gemma"}'}, files_in(place.path("there"))
    assert files_in(place.fetched("own-er/small", "--to", "there", "--overwrite")[0]) == FILES
    with open(place.path("file"), "w") as file:
        file.write("mine")
    place.refused(2, "file", "own-er/small", "--to", "file")
    place.refused(2, "file", "own-er/small", "--to", "file/below")


def check_full_disk(place):
    """Refused before the start with the bytes needed; one that fills up later leaves no half file, and room lets it go on."""
    own_mounts = ["unshare", "--mount"] + ([] if os.getuid() == 0 else ["--user", "--map-root-user"])
    if subprocess.run(own_mounts + ["sh", "-c", "mount -t tmpfs none /mnt"], capture_output=True).returncode != 0:
        return print("skipped: no file system can be mounted here")
    os.makedirs(place.path("disk"))

    def run(size, script):
        done = subprocess.run(own_mounts + ["sh", "-c", f"mount -t tmpfs -o size={size} none disk && {script}", "sh", place.program, "own-er/small", "--to", "disk/there", "--retries", "1"],
                              cwd=place.folder, env=place.environment(), capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    need = sum(map(len, FILES.values()))
    code, out, said = run("400k", '"$@"; code=$?; ls -A disk; exit $code')
    assert code == 2 and out == "" and f"{need} bytes" in said and "--to" in said, (code, out, said)
    place.hub.faults = [Fault("/" + content_hash(FILES["model-00002-of-00002.safetensors"]), rate=400_000, times=2)]
    code, out, said = run("1m", '("$@" & until [ -e disk/there/model-00001-of-00002.safetensors ]; do sleep 0.05; done; head -c 2000000 /dev/zero > disk/filler; wait $!; echo code $?) 2>&1; '
                                'ls disk/there; rm disk/filler; "$@"; code=$?; cat disk/there/model-00002-of-00002.safetensors | wc -c; exit $code')
    assert code == 0 and "code 1" in out and "No space left" in out and "free some space" in out, (code, out, said)
    assert "model-00002-of-00002.safetensors\n" not in out.split("code 1")[1].partition("disk/there")[0] and out.rstrip().endswith("200001"), out


def check_terminal_and_proxy(place):
    """One line that is rewritten, on a terminal alone; libcurl's proxies."""
    place.hub.faults = [Fault("/" + content_hash(FILES["model-00001-of-00002.safetensors"]), rate=300_000)]
    terminal, end = pty.openpty()
    process = subprocess.Popen([place.program, "own-er/small", "--to", "there"], cwd=place.folder, env=place.environment(), stdout=subprocess.PIPE, stderr=end)
    os.close(end)
    shown = b""
    try:
        while part := os.read(terminal, 1000):
            shown += part
    except OSError:
        pass
    assert process.wait() == 0 and process.stdout.read() == b"there\n", shown
    assert re.search(rb"\r\x1b\[Kmodel-00001-of-00002.safetensors  [^\r]* of 493\.\d KiB  [^\r]*/s  0:0\d left", shown), shown
    _, said = place.fetched("own-er/small", "--to", "plain")
    assert "\r" not in said, said
    place.hub.requests = []
    folder, _ = place.fetched("own-er/small", "--to", "far", "--include", "*.json", "--exclude", "tokenizer.json", HF_ENDPOINT="http://hub.invalid", http_proxy=place.hub.address)
    assert files_in(folder) == {name: content for name, content in {**FILES, **OTHERS}.items() if name.endswith(".json") and name != "tokenizer.json"}, files_in(folder)


def check_certificates(place):
    """A hub whose certificate nobody knows is refused, until its file is named; https never becomes http."""
    if not shutil.which("openssl"):
        return print("skipped: openssl is missing, which makes certificates")
    subprocess.run("openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost".split(),
                   cwd=place.folder, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(place.path("cert.pem"), place.path("key.pem"))
    place.hub.servers[0].socket = context.wrap_socket(place.hub.servers[0].socket, server_side=True)
    hub = {"HF_ENDPOINT": f"https://localhost:{place.hub.servers[0].server_port}"}
    place.refused(2, ["certificate", "CURL_CA_BUNDLE"], "own-er/small", "--to", "there", **hub)
    folder, _ = place.fetched("own-er/small", "--to", "there", "--include", "*.md", CURL_CA_BUNDLE=place.path("cert.pem"), **hub)
    assert files_in(folder) == {"README.md": FILES["README.md"]}
    place.refused(2, "https stays https", "own-er/small", "--to", "large", "--include", "*-00001-*", CURL_CA_BUNDLE=place.path("cert.pem"), **hub)
    assert not os.path.exists(place.path("large")) and not [seen for seen in place.hub.requests if seen["host"] == "store"]


def check_command_line(place):
    """Mistakes of the user, before anything is asked."""
    for words, parts in ((["a b"], "OWNER/NAME"), (["../x"], "OWNER/NAME"), (["a/b/c"], "OWNER/NAME"), (["https://huggingface.co/a/b"], "after the host"), (["datasets/a/b"], "--dataset"),
                         (["a/b@"], "revision"), (["a/b@../../x"], "revision"), (["a/b", "--too", "x"], "--to"), ([], "repository"), (["a/b", "--retries", "-1"], "retries")):
        place.refused(2, parts, *words)
    for variables, part in (({"HF_ENDPOINT": "huggingface.co"}, "HF_ENDPOINT"), ({"HF_ENDPOINT": "http://me:secret@h"}, "no password"), ({"HF_HUB_OFFLINE": "1"}, "HF_HUB_OFFLINE"),
                            ({"HF_HUB_DOWNLOAD_TIMEOUT": "soon"}, "HF_HUB_DOWNLOAD_TIMEOUT"), ({"CURL_CA_BUNDLE": "/no/such"}, "/no/such")):
        assert "secret" not in place.refused(2, part, "own-er/small", **variables)
    place.refused(2, "--overwrite requires --to", "own-er/small", "--overwrite")
    assert place.hub.requests == []
    place.refused(2, "HF_HOME", "own-er/small", HOME=None)
    # A hub whose name no server knows is not asked again.
    begin = time.monotonic()
    said = place.refused(2, ["hub.invalid", "check the network, or the name of the hub in HF_ENDPOINT"], "own-er/small", HF_ENDPOINT="http://hub.invalid")
    assert "try 2" not in said and time.monotonic() - begin < 10, said


if __name__ == "__main__":
    args = arguments(__doc__)

    def run(check, folder):
        place = Place(args, folder)
        try:
            check(place)
        finally:
            place.hub.close()

    run_checks(args, dict(globals()), run)
