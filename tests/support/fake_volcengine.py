#!/usr/bin/env python3
"""A small Volcengine for tests: the signed control plane of veFaaS, the API gateway in front of its sandboxes, and AIO servers behind
it (fake_aio.py), all on one port. It isolates nothing: commands run as whoever started it. The npm package `@volcengine/openapi`
drives it in tests/remote/e2e, so that what is tested against it is tested against what others send, too.

    fake_volcengine.py DIRECTORY        homes of sandboxes are made there; prints its port, ends when its stdin does

POST / is the control plane, /gw the gateway, /aio a container that needs none. Every line of DIRECTORY/faults is something that it
does wrong, WHERE=WHAT; see `fault`. Every request is told in DIRECTORY/log.
"""
import hashlib, hmac, json, os, re, resource, secrets, signal, sys, threading, time, urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from fake_aio import AioBox, serve_aio
from fake_e2b_faults import Cut
from fake_machine import never

ROOT = os.path.realpath(sys.argv[1])
KEYS = {"AKLTEXAMPLE0123456789": "c2VjcmV0LWtleS1vZi1hLXRlc3Q=", "AKTPEXAMPLE0123456789": "dGVtcG9yYXJ5LXNlY3JldC1rZXk="}
TOKENS = {"AKTPEXAMPLE0123456789": {"STSTOKENEXAMPLE0123456789": True, "STSEXPIREDEXAMPLE01234567": False}}
FUNCTION, REGION, GATEWAY_KEY, AIO_KEY = "fn-test", "cn-beijing", "Bearer gw-0123456789abcdef", "aio-0123456789abcdef"
VERSIONS = {"vefaas": "2024-06-06", "apig": "2022-11-12"}
log_lock = threading.Lock()


def fault(where):
    """What is to go wrong at `where`; `WHAT*N` goes wrong N times."""
    try:
        with log_lock, open(ROOT + "/faults", "r+") as file:
            lines = file.read().split()
            for i, line in enumerate(lines):
                place, _, what = line.partition("=")
                if place != where:
                    continue
                what, _, times = what.partition("*")
                if times:
                    left = int(times) - 1
                    lines[i] = f"{place}={what}*{left}" if left else ""
                    file.seek(0)
                    file.truncate()
                    file.write("\n".join(lines))
                return what
    except FileNotFoundError:
        pass
    return ""


class Refused(Exception):
    def __init__(self, status, code, message):
        self.status, self.code, self.message = status, code, message


def stamp(moment):
    return time.strftime("%Y-%m-%dT%H:%M:%S+08:00", time.gmtime(moment + 8 * 3600))


class Box:
    def __init__(self, request, seconds):
        self.id = "sb-" + secrets.token_hex(8)
        self.request, self.created, self.end = request, time.time(), time.time() + seconds
        self.status, self.looks, self.paused = "Starting", int(fault("starting") or 1), None
        self.cpu, self.memory = request.get("CpuMilli", 1000), request.get("MemoryMB", 2048)
        self.inside = AioBox(self.id, f"{ROOT}/{self.id}", [(env["Key"], env["Value"]) for env in request.get("Envs", [])])

    def look(self):
        if self.status == "Starting":
            self.looks -= 1
            failed = fault("becomes") == "failed"  # at once, however long it was to take
            if self.looks <= 0 or failed:
                self.status = "Failed" if failed else "Ready"

    def describe(self):
        metadata = [{"MetaKey": key, "MetaValue": value} for key, value in self.request.get("Metadata", {}).items()]
        found = {"Id": self.id, "FunctionId": FUNCTION, "Status": self.status, "Pending": self.status == "Starting",
                 "CreatedAt": stamp(self.created), "ExpireAt": stamp(self.end), "InstanceType": "elastic", "CpuMilli": self.cpu,
                 "MemoryMB": self.memory, "MetadataList": metadata, "Envs": self.request.get("Envs", []),
                 "NetworkRules": self.request.get("NetworkRules", {"AllowEgressAccess": True})}
        if self.paused:
            found["PausedAt"] = stamp(self.paused)
        if self.status == "Failed":
            found.update(ErrorCode="function_health_check_failed", ErrorMessage="told to fail")
        return found

    def kill(self):
        self.status = "Terminated"
        self.inside.kill()


boxes, boxes_lock = {}, threading.Lock()
bare = AioBox("bare", ROOT + "/bare")


def find_box(box_id):
    box = boxes.get(box_id)
    if box and box.status != "Terminated" and (time.time() >= box.end or fault("expired")):
        box.kill()
    return None if box is None or box.status == "Terminated" else box


# --- the control plane


def escaped(text):
    return urllib.parse.quote(text, safe="-_.~")


def check_signature(headers, raw_query, body, service):
    """As the service does: with the headers that the caller says it signed. Clients differ in which they are."""
    match = re.fullmatch(r"HMAC-SHA256 Credential=([^/,]+)/(\d{8})/([^/]+)/([^/]+)/request, SignedHeaders=([^,]+), Signature=([0-9a-f]{64})",
                         headers.get("Authorization", ""))
    if not match:
        raise Refused(401, "InvalidAuthorization", "The Authorization header is invalid")
    key, day, region, signed_service, names, signature = match.groups()
    if key not in KEYS:
        raise Refused(401, "InvalidAccessKeyId", f"The access key {key} does not exist")
    names, date, token = names.split(";"), headers.get("X-Date", ""), headers.get("X-Security-Token")
    if "x-date" not in names or (token and "x-security-token" not in names):
        raise Refused(401, "SignatureDoesNotMatch", "x-date must be signed, and a token")
    body_hash = hashlib.sha256(body).hexdigest()
    if headers.get("X-Content-Sha256", body_hash) != body_hash:
        raise Refused(401, "SignatureDoesNotMatch", "the body is not what was signed")
    moment = time.mktime(time.strptime(date, "%Y%m%dT%H%M%SZ")) - time.timezone
    if not date.startswith(day) or abs(moment - time.time()) > 900:
        raise Refused(401, "SignatureDoesNotMatch", "the signature is of another time")
    if (signed_service, region) != (service, REGION):
        raise Refused(401, "SignatureDoesNotMatch", "the signature is for another service or region")
    pairs = sorted(urllib.parse.parse_qsl(raw_query, keep_blank_values=True))
    query = "&".join(f"{escaped(name)}={escaped(value)}" for name, value in pairs)
    lines = "".join(f"{name}:{' '.join(headers.get(name, '').split())}\n" for name in names)
    canonical = f"POST\n/\n{query}\n{lines}\n{';'.join(names)}\n{body_hash}"
    text = f"HMAC-SHA256\n{date}\n{day}/{region}/{service}/request\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    secret = KEYS[key].encode()
    for part in (day, region, service, "request"):
        secret = hmac.digest(secret, part.encode(), "sha256")
    if hmac.new(secret, text.encode(), "sha256").hexdigest() != signature:
        raise Refused(401, "SignatureDoesNotMatch", "The request signature does not match")
    if key in TOKENS and not TOKENS[key].get(token):
        raise Refused(401, "InvalidSecurityToken", f"The security token {token} is invalid or expired")


def seconds_of(request):
    unit = request.get("TimeoutUnit", "minute")
    if unit not in ("minute", "second"):
        raise Refused(400, "InvalidParameter", "TimeoutUnit")
    seconds = request.get("Timeout", 60 if unit == "minute" else 3600) * (60 if unit == "minute" else 1)
    if not isinstance(seconds, int) or not 180 <= seconds <= 86400:
        raise Refused(400, "InvalidParameter", "Timeout must be between 3 and 1440 minutes")
    return seconds


def need_box(request):
    box = find_box(request.get("SandboxId"))
    if box is None:
        raise Refused(404, "ResourceNotFound", f"sandbox {request.get('SandboxId')} not found")
    return box


def create(request):
    seconds = seconds_of(request)
    if not 250 <= request.get("CpuMilli", 1000) <= 16000 or not 512 <= request.get("MemoryMB", 2048) <= 131072:
        raise Refused(400, "InvalidParameter", "CpuMilli or MemoryMB")
    with boxes_lock:
        box = Box(request, seconds)
        boxes[box.id] = box
    if fault("create") == "noid":
        return {"AssignStatus": "Success"}
    if fault("create") == "lost":
        raise Cut()
    if fault("create") == "huge":  # more than is read of an answer
        return {"SandboxId": box.id, "AssignStatus": "Success", "Padding": "x" * (5 << 20)}
    return {"SandboxId": box.id, "AssignStatus": "Success"}


def describe(request):
    box = need_box(request)
    box.look()
    return box.describe()


def kill(request):
    need_box(request).kill()
    return {}


def pause(request):
    box = need_box(request)
    if box.status != "Ready":
        raise Refused(400, "OperationDenied", "the sandbox does not run")
    box.status, box.paused = "Paused", time.time()
    return {}


def resume(request):
    box = need_box(request)
    box.status, box.paused, box.looks, box.end = "Starting", None, 1, time.time() + seconds_of(request)
    return {}


def set_timeout(request):
    box = need_box(request)
    box.end = time.time() + seconds_of(request)
    return {"ExpireAt": stamp(box.end)}


def list_boxes(request):
    wanted = request.get("Metadata", {})
    alive = [box for box in list(boxes.values()) if find_box(box.id)]
    found = [box.describe() for box in alive if all(box.request.get("Metadata", {}).get(k) == v for k, v in wanted.items())]
    return {"Sandboxes": found, "Total": len(found), "StatusCount": {}}


def list_triggers(_):
    upstream = {"UpstreamId": "up-test", "GatewayId": "gw-test"}
    items = [{"Type": "timer", "DetailedConfig": "{}"}, {"Type": "apig", "DetailedConfig": json.dumps(upstream)}]
    return {"Items": [] if fault("triggers") == "none" else items}


def list_routes(request):
    if request.get("UpstreamId") != "up-test":
        raise Refused(404, "ResourceNotFound", "upstream")
    domains = [{"Domain": "private.example.invalid", "Type": "private"}, {"Domain": f"http://127.0.0.1:{PORT}", "Type": "public"}]
    return {"Items": [{"Id": "r-1", "MatchRule": {"Path": {"MatchType": "Prefix", "MatchContent": "/gw"}}, "Domains": domains}]}


ACTIONS = {"CreateSandbox": create, "DescribeSandbox": describe, "KillSandbox": kill, "PauseSandbox": pause, "ResumeSandbox": resume,
           "SetSandboxTimeout": set_timeout, "ListSandboxes": list_boxes, "ListTriggers": list_triggers, "ListRoutes": list_routes}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def reply(self, status, value=None, raw=None, kind="application/json", headers=()):
        data = raw if raw is not None else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        for name, text in headers:
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(data)

    def serve(self):
        url = urllib.parse.urlsplit(self.path)
        self.query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True, encoding="utf-8", errors="surrogateescape"))
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with log_lock, open(ROOT + "/log", "a") as file:
            file.write(json.dumps([self.command, self.path, dict(self.headers), data[:2000].decode("latin-1")]) + "\n")
        try:
            if url.path == "/":
                self.control(url.query, data)
            elif url.path.startswith("/gw/"):
                self.gateway(url.path.removeprefix("/gw"), data)
            elif url.path.startswith("/aio/"):
                self.container(url.path.removeprefix("/aio"), data)
            else:
                self.reply(404, {"message": "no Route matched with those values"})
        except Cut:
            self.close_connection = True
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    do_GET = do_POST = serve

    def misbehave(self, wrong):
        """True: it did. STATUS[:RETRY-AFTER], html, huge, cut (in the middle of a body), stall."""
        status, _, after = wrong.partition(":")
        if status.isdigit():
            self.reply(int(status), {"message": f"told to fail; {self.headers.get('Authorization')}"}, headers=[("Retry-After", after or "0")])
        elif wrong == "html":
            self.reply(200, raw=b"<html>a portal</html>", kind="text/html")
        elif wrong == "json":
            self.reply(200, [])
        elif wrong == "huge":
            self.reply(200, {"success": True, "padding": "x" * (9 << 20)})
        elif wrong == "cut":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b'{"success": true, "ResponseMetadata": {')
            raise Cut()
        elif wrong == "stall":
            never()
        return status.isdigit() or wrong in ("html", "json", "huge")

    def control(self, raw_query, data):
        action = self.query.get("Action", "")
        service = "apig" if action == "ListRoutes" else "vefaas"
        metadata = {"RequestId": secrets.token_hex(16), "Action": action, "Version": self.query.get("Version"), "Service": service,
                    "Region": REGION}
        wrong = fault(action) or fault("control")
        if wrong == "throttled":
            error = {"CodeN": 100018, "Code": "FlowLimitExceeded", "Message": "Request was rejected because the request speed is too high"}
            return self.reply(429, {"ResponseMetadata": {**metadata, "Error": error}}, headers=[("Retry-After", "0")])
        if wrong == "other":  # what stands before the service
            return self.reply(400, {"HTTPCode": 400, "errorcode": "InvalidParameter", "message": "Command is empty"})
        if self.misbehave(wrong):
            return None
        try:
            check_signature(self.headers, raw_query, data, service)
            if action not in ACTIONS or self.query.get("Version") != VERSIONS[service]:
                raise Refused(404, "InvalidActionOrVersion", f"Could not find operation {action}")
            request = json.loads(data)
            if action != "ListRoutes" and request.get("FunctionId") != FUNCTION:
                raise Refused(404, "ResourceNotFound", f"function {request.get('FunctionId')} not found")
            self.reply(200, {"ResponseMetadata": metadata, "Result": ACTIONS[action](request)})
        except Refused as refused:
            error = {"CodeN": 100000, "Code": refused.code, "Message": refused.message}
            self.reply(refused.status, {"ResponseMetadata": {**metadata, "Error": error}})

    def gateway(self, path, data):
        if self.headers.get("Authorization") != GATEWAY_KEY:
            return self.reply(401, {"message": "No API key found in request"})
        box = find_box(self.query.get("faasInstanceName") or self.headers.get("x-faas-instance-name"))
        if box is None or box.status != "Ready":
            return self.reply(404, {"message": "instance not found"})
        self.aio(box.inside, path, data, float(fault("gateway") or 30))

    def container(self, path, data):
        if AIO_KEY not in (self.headers.get("X-AIO-API-Key"), self.headers.get("Authorization", "").removeprefix("Bearer "),
                           self.query.get("api_key")):
            return self.reply(401, {"detail": "Invalid or missing API key"})
        self.aio(bare, path, data, 3600)

    def aio(self, inside, path, data, most):
        if not self.misbehave(fault(path.removeprefix("/v1/")) or fault("aio")):
            is_json = self.headers.get("Content-Type", "").startswith("application/json")
            serve_aio(self, inside, path, data, json.loads(data) if data and is_json else {}, most, fault)


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 2048

    def handle_error(self, *_):
        pass


threading.stack_size(256 << 10)
most_files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
server = Server(("127.0.0.1", 0), Handler)
PORT = server.server_address[1]
threading.Thread(target=server.serve_forever, daemon=True).start()
print(PORT, flush=True)
try:
    while sys.stdin.read(1):
        pass
finally:
    for one in list(boxes.values()):
        if one.status != "Terminated":
            one.kill()
    bare.kill()
