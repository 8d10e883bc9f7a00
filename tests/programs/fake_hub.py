"""A Hugging Face hub on the loopback device, for test_fetch.py: its API of revisions, listings and files, a second host that
holds large files, and faults by request. The form of its answers is that of the hub's OpenAPI description and of huggingface_hub."""
import hashlib
import json
import re
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LARGE = 1000  # bytes from which a file is stored apart


def git_hash(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def content_hash(content):
    return hashlib.sha256(content).hexdigest() if len(content) >= LARGE else git_hash(content)


class Fault:
    """Changes the answers to the next `times` requests whose path matches: another status, a body that is cut or stalls after so
    many bytes, one without ranges, other bytes, or a slow one."""

    def __init__(self, path, times=1, status=0, headers=(), cut=None, stall=None, no_ranges=False, content=None, rate=0):
        self.path, self.times, self.status, self.headers, self.cut, self.stall = path, times, status, headers, cut, stall
        self.no_ranges, self.content, self.rate = no_ranges, content, rate


class Repository:
    def __init__(self, files, gated=False, private=False):
        self.commits, self.branches, self.gated, self.private = {}, {}, gated, private
        self.commit(files)

    def commit(self, files, branch="main"):
        name = hashlib.sha1(repr((sorted(files), len(self.commits))).encode()).hexdigest()
        self.commits[name] = dict(files)
        self.branches[branch] = name
        return name

    def find(self, revision):
        return self.branches.get(revision, revision if revision in self.commits else None)


class Hub:
    """`repositories`: by "models/OWNER/NAME" or "datasets/OWNER/NAME"."""

    def __init__(self, repositories, token="hf_secretToken", page=1000):
        self.repositories, self.token, self.page = repositories, token, page
        self.faults, self.requests, self.listing, self.stored = [], [], None, {}
        self.after_revision = lambda: None
        self.lock = threading.Lock()
        self.servers = [self.serve(self.answer), self.serve(self.answer_store)]
        self.address = f"http://127.0.0.1:{self.servers[0].server_port}"
        self.store = f"http://localhost:{self.servers[1].server_port}"

    def serve(self, answer):
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                try:
                    answer(self)
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True

            do_HEAD = do_GET  # huggingface_hub asks so for hashes

            def log_message(self, *words):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server

    def close(self):
        for server in self.servers:
            server.shutdown()
            server.server_close()

    def note(self, request, host):
        """Records the request, and takes the fault that it meets."""
        path, _, query = re.sub(r"^http://[^/]*", "", request.path).partition("?")
        path = urllib.parse.unquote(path)
        with self.lock:
            self.requests.append({"host": host, "path": path, "range": request.headers.get("Range"), "authorization": request.headers.get("Authorization")})
            for fault in self.faults:
                if fault.times > 0 and re.search(fault.path, path):
                    fault.times -= 1
                    return path, query, fault
        return path, query, Fault("")

    def paths(self, pattern=""):
        with self.lock:
            return [seen["path"] for seen in self.requests if re.search(pattern, seen["path"])]

    def answer(self, request):
        path, query, fault = self.note(request, "hub")
        if fault.status:
            return send(request, fault.status, b'{"error": "a fault of the test"}', fault.headers)
        if match := re.fullmatch(r"/api/(models|datasets)/([^/]+/[^/]+)(?:/(revision|tree)/(.+))?", path):
            return self.answer_api(request, f"{match[1]}/{match[2]}", match[3], match[4], query)
        if match := re.fullmatch(r"/(datasets/)?([^/]+/[^/]+)/resolve/([0-9a-f]{40})/(.+)", path):
            return self.answer_file(request, f"{'datasets' if match[1] else 'models'}/{match[2]}", match[3], match[4], fault)
        send(request, 404, b"")

    def repository(self, request, name):
        """The repository, or None after a refusal in the hub's way."""
        found = self.repositories.get(name)
        token = request.headers.get("Authorization")
        if token and token != f"Bearer {self.token}":
            return send(request, 401, b'{"error": "Invalid credentials in Authorization header"}')
        if found and not (found.private and not token):
            return found
        send(request, 404 if token else 401, b'{"error": "Repository not found"}', [("X-Error-Code", "RepoNotFound"), ("X-Error-Message", "Repository not found")])

    def answer_api(self, request, name, what, revision, query):
        repository = self.repository(request, name)
        if repository is None:
            return
        commit = repository.find(revision) if what else next(iter(repository.commits))
        if commit is None:
            return send(request, 404, b"", [("X-Error-Code", "RevisionNotFound"), ("X-Error-Message", f"Invalid rev id: {revision}")])
        if what != "tree":
            send(request, 200, json.dumps({"id": name, "sha": commit, "siblings": []}).encode())
            return self.after_revision()
        entries = self.listing if self.listing is not None else entries_of(repository.commits[commit])
        if not isinstance(entries, list):
            return send(request, 200, json.dumps(entries).encode())
        begin = int(urllib.parse.parse_qs(query).get("cursor", ["0"])[0])
        rest = [("Link", f'<{self.address}/api/{name}/tree/{commit}?recursive=true&cursor={begin + self.page}>; rel="next"')] if begin + self.page < len(entries) else []
        send(request, 200, json.dumps(entries[begin:begin + self.page]).encode(), rest)

    def answer_file(self, request, name, commit, path, fault):
        repository = self.repository(request, name)
        if repository is None:
            return
        if repository.gated and repository.gated != request.headers.get("Authorization"):
            signed_in = request.headers.get("Authorization")
            return send(request, 403 if signed_in else 401, b"", [("X-Error-Code", "GatedRepo"), ("X-Error-Message", "Access to this repository is restricted")])
        content = repository.commits.get(commit, {}).get(path)
        if content is None:
            return send(request, 404, b"", [("X-Error-Code", "EntryNotFound"), ("X-Error-Message", "Entry not found")])
        if len(content) < LARGE:
            return send_content(request, content, fault, [("ETag", f'"{git_hash(content)}"'), ("X-Repo-Commit", commit)])
        self.stored[content_hash(content)] = content
        send(request, 302, b"", [("Location", f"{self.store}/{content_hash(content)}?Signature=signed"), ("X-Linked-Etag", f'"{content_hash(content)}"'),
                                     ("X-Linked-Size", str(len(content))), ("X-Repo-Commit", commit)])

    def answer_store(self, request):
        path, _, fault = self.note(request, "store")
        if fault.status:
            return send(request, fault.status, b"<xml/>", fault.headers)
        send_content(request, self.stored[path[1:]], fault)


def entries_of(files):
    entries = [{"type": "directory", "oid": "0" * 40, "size": 0, "path": folder} for folder in sorted({path.rpartition("/")[0] for path in files} - {""})]
    for path, content in files.items():
        entry = {"type": "file", "oid": git_hash(content), "size": len(content), "path": path}
        if len(content) >= LARGE:
            entry.update(oid="1" * 40, lfs={"oid": content_hash(content), "size": len(content), "pointerSize": 134})
        entries.append(entry)
    return entries


def send(request, status, body, headers=()):
    request.send_response(status)
    for name, value in headers:
        request.send_header(name, value)
    request.send_header("Content-Length", str(len(body)))
    request.end_headers()
    if request.command != "HEAD":
        request.wfile.write(body)


def send_content(request, content, fault, headers=()):
    """A file or the rest of it, as the fault wants."""
    content = fault.content if fault.content is not None else content
    begin, asked = 0, re.fullmatch(r"bytes=(\d+)-", request.headers.get("Range") or "")
    if asked and not fault.no_ranges:
        begin = int(asked[1])
    if begin and begin >= len(content):
        return send(request, 416, b"", [("Content-Range", f"bytes */{len(content)}")])
    body = content[begin:]
    request.send_response(206 if begin else 200)
    if begin:
        request.send_header("Content-Range", f"bytes {begin}-{len(content) - 1}/{len(content)}")
    for name, value in headers:
        request.send_header(name, value)
    request.send_header("Content-Length", str(len(body)))
    request.end_headers()
    if request.command == "HEAD":
        return
    ends = [end for end in (fault.cut, fault.stall) if end is not None]
    body = body[:min(ends)] if ends else body
    step = max(1, fault.rate // 20) if fault.rate else max(1, len(body))
    for offset in range(0, len(body), step):
        request.wfile.write(body[offset:offset + step])
        if fault.rate:
            request.wfile.flush()
            time.sleep(0.05)
    if fault.stall is not None:
        request.wfile.flush()
        time.sleep(4)
    if ends:
        request.close_connection = True
