// The table of policy keys: one row for each, and everything else reads it (schema.h).
//
// `hostile` is written for every key, since the question decides what `narrow` may be: what does the worst
// project file get out of this? A key for which the answer is more than a refusal, something missing or
// something slower stays Narrow::kNever.
#include "policy/schema.h"

#include <algorithm>

namespace belljar::policy {
namespace {

using T = Type;
using J = Join;
using N = Narrow;

// clang-format off
#define BELLJAR_FIELD(member) [](Policy& policy) -> Field { return &policy.member; }
constexpr Key kKeys[] = {
    {.name = "profile", .type = T::kText, .narrow = N::kNever, .field = BELLJAR_FIELD(profile), .fallback = "workspace-write",
     .risk = "the profile's own", .doc = "Named policy to start from: read-only, workspace-write, ci-strict, dev, build, agent-claude, agent-codex, agent-gemini, agent-opencode, agent-generic.",
     .hostile = "nothing: a word of its own would choose the trusted base"},
    {.name = "mode", .type = T::kEnum, .values = "read-only|workspace-write|danger-full-access|external-sandbox", .narrow = N::kStricter,
     .field = BELLJAR_FIELD(mode), .fallback = "workspace-write", .risk = "danger-full-access drops file and network rules; external-sandbox enforces only timeouts and output caps",
     .doc = "What kind of sandbox; set to read-only it also drops the write rules of lower layers.",
     .hostile = "writes are refused; a value in force, said again, moves no layer's rules"},
    {.name = "backend", .flag = "--backend", .type = T::kEnum, .values = "native|landlock|container|e2b|aliyun|volcengine|auto", .narrow = N::kNever, .field = BELLJAR_FIELD(backend), .fallback = "native",
     .risk = "landlock alone hides less; a container engine is trusted with all of the machine; e2b, aliyun and volcengine send the command to a machine of somebody else",
     .doc = "How isolation is made; container needs an engine and an image (--image), e2b, aliyun and volcengine an account (E2B_API_KEY; AGENTBAY_API_KEY; VOLC_ACCESS_KEY_ID and VOLC_SECRET_ACCESS_KEY); auto takes landlock where user namespaces are refused, and a container where isolation asks for more.",
     .hostile = "nothing: it could choose weaker isolation or a machine elsewhere"},
    {.name = "fallback", .flag = "--fallback", .type = T::kTexts, .narrow = N::kNever, .field = BELLJAR_FIELD(fallback), .fallback = "[]",
     .risk = "as `backend`; what a machine elsewhere sees leaves this one", .doc = "Backends that are tried in this order when `backend` cannot start, each held to the same requirements; never local or mock, clouds only when named. For run, mcp and agent (clouds: run alone); create and learn take `backend` alone.",
     .hostile = "nothing; while a project file has a say, no fallback leads elsewhere"},
    {.name = "isolation", .flag = "--isolation", .type = T::kEnum, .values = "vm|container|namespace|landlock|guard-rails|none", .narrow = N::kNever, .field = BELLJAR_FIELD(isolation), .fallback = "none",
     .risk = "none", .doc = "What must at least stand between the command and this machine, or the start fails; with backend auto, vm and container ask an engine.",
     .hostile = "nothing: with `auto` it would choose the backend"},
    {.name = "require", .flag = "--require", .type = T::kTexts, .join = J::kUnion, .narrow = N::kMore, .field = BELLJAR_FIELD(require), .fallback = "[]", .risk = "none",
     .doc = "Clauses of the enforcement report that must read `full`, or the start fails.",
     .hostile = "the start fails, or a fallback that the user named comes sooner"},
    {.name = "accept", .flag = "--accept", .type = T::kTexts, .join = J::kUnion, .narrow = N::kSubset, .field = BELLJAR_FIELD(accept), .fallback = "[]", .risk = "the clause may hold less than asked for",
     .doc = "Clauses that may read less than the policy asks; named loudly at start.",
     .hostile = "the start fails where the user would have let it pass"},
    {.name = "enable_weaker_nested_sandbox", .flag = "--enable-weaker-nested-sandbox", .type = T::kBool, .narrow = N::kStricter,
     .field = BELLJAR_FIELD(enable_weaker_nested_sandbox), .fallback = "false", .risk = "parts that cannot nest are missing", .doc = "Inside another sandbox that lets namespaces nest (one of Belljar with --allow-nested-userns), drop what cannot nest, and report it.",
     .hostile = "the start fails inside another sandbox"},
    {.name = "allow_nested_userns", .flag = "--allow-nested-userns", .type = T::kBool, .narrow = N::kStricter, .field = BELLJAR_FIELD(allow_nested_userns), .fallback = "false",
     .risk = "kernel code reachable only with namespaced capabilities", .doc = "The command may make user namespaces (Chromium, Bazel, bwrap), without a /proc of their own.",
     .hostile = "programs that nest fail"},
    {.name = "allow_root_uid", .flag = "--allow-root-uid", .type = T::kBool, .narrow = N::kStricter, .field = BELLJAR_FIELD(allow_root_uid), .fallback = "false",
     .risk = "kernel uid 0 passes many checks without capabilities", .doc = "As root on a file system that cannot idmap: run with kernel uid 0, loudly.",
     .hostile = "the start fails where only kernel uid 0 would do"},
    {.name = "warm", .flag = "--warm", .type = T::kBool, .narrow = N::kStricter, .field = BELLJAR_FIELD(warm), .fallback = "false",
     .risk = "none; one or two idle sandboxes cost a few MiB for ten minutes", .doc = "Of `belljar run` alone: keep one or two sandboxes ready for the next runs like this one, each for one command. BELLJAR_WARM=1 says it, too; `belljar warm` shows them.",
     .hostile = "starts are slower"},

    {.name = "filesystem.entries", .type = T::kEntries, .join = J::kEntries, .narrow = N::kEntries, .field = BELLJAR_FIELD(filesystem.entries), .fallback = "[]", .risk = "what they open",
     .doc = "Rules {path | glob, access = read | write | none}; the most specific path wins, ties resolve none > write > read.",
     .hostile = "paths are closed; what it says may be read or written yields to what any trusted layer says, later ones too"},
    {.name = "filesystem.writable_roots", .flag = "--write", .type = T::kPaths, .join = J::kEntries, .narrow = N::kEntries, .field = BELLJAR_FIELD(filesystem.entries), .fallback = "[]",
     .risk = "the command changes these files for good", .doc = "Paths the command may write besides the workspace.",
     .hostile = "as `filesystem.entries`"},
    {.name = "filesystem.readonly_paths", .flag = "--read", .type = T::kPaths, .join = J::kEntries, .narrow = N::kEntries, .field = BELLJAR_FIELD(filesystem.entries), .fallback = "[]",
     .risk = "opens a hidden path for reading", .doc = "Paths the command may read and not write.",
     .hostile = "as `filesystem.entries`"},
    {.name = "filesystem.blocked_paths", .flag = "--hide", .type = T::kPaths, .join = J::kEntries, .narrow = N::kEntries, .field = BELLJAR_FIELD(filesystem.entries), .fallback = "[]", .risk = "none",
     .doc = "Paths that answer EACCES to opens, listings and changes, also when they appear later (times, owner and extended attributes too, with another errno; not by the backend landlock). In a container a name that does not exist is refused.",
     .hostile = "as `filesystem.entries`"},
    {.name = "filesystem.volumes", .type = T::kVolumes, .join = J::kUnion, .narrow = N::kSubset, .field = BELLJAR_FIELD(filesystem.volumes), .fallback = "[]",
     .risk = "with readonly = false the command changes the source", .doc = "Host paths shown at another place: {source, target, readonly = true}.",
     .hostile = "a volume is missing or read-only; what lies under it shows by its own rules"},
    {.name = "filesystem.protect", .type = T::kEnum, .values = "all|default|none", .narrow = N::kStricter, .field = BELLJAR_FIELD(filesystem.protect), .fallback = "default",
     .risk = "none: a later git, editor or agent outside may run planted code", .doc = "Git control and agent or editor names inside writable roots stay as they are.",
     .hostile = "more names are kept"},
    {.name = "filesystem.allow_git_removal", .flag = "--allow-git-removal", .type = T::kBool, .narrow = N::kStricter, .field = BELLJAR_FIELD(filesystem.allow_git_removal), .fallback = "false",
     .risk = "a slip (`rm -rf .git`) takes the history with it", .doc = "Programs other than git may remove the workspace's own .git; in the layers of a transaction they always may.",
     .hostile = "a removal is refused"},
    {.name = "filesystem.secrets", .type = T::kEnum, .values = "default|none", .narrow = N::kStricter, .field = BELLJAR_FIELD(filesystem.secrets), .fallback = "default",
     .risk = "none: keys and tokens can be read", .doc = "Hides the built-in list of secret paths (~/.ssh, ~/.aws ...).",
     .hostile = "the list of secrets is hidden"},
    {.name = "filesystem.tmp", .type = T::kEnum, .values = "private|shared", .narrow = N::kStricter, .field = BELLJAR_FIELD(filesystem.tmp), .fallback = "private",
     .risk = "shared: other programs' files and sockets in /tmp", .doc = "Private /tmp, /var/tmp, /dev/shm and $XDG_RUNTIME_DIR, or the host's /tmp, /var/tmp and $TMPDIR.",
     .hostile = "a private /tmp, empty at the start"},
    {.name = "filesystem.tmp_size", .type = T::kSize, .narrow = N::kLower, .field = BELLJAR_FIELD(filesystem.tmp_size), .fallback = "1GiB", .risk = "memory",
     .doc = "Size of the private temporary directories together.",
     .hostile = "the temporary directories are full sooner"},
    {.name = "filesystem.temp_dir", .type = T::kPath, .narrow = N::kNever, .field = BELLJAR_FIELD(filesystem.temp_dir),
     .risk = "the command changes files there for good", .doc = "A host directory that is writable and becomes $TMPDIR.",
     .hostile = "nothing: it would open a directory for writing"},
    {.name = "filesystem.clean_temp_dir", .type = T::kBool, .narrow = N::kStricter, .strict = true, .field = BELLJAR_FIELD(filesystem.clean_temp_dir), .fallback = "false",
     .risk = "none", .doc = "temp_dir is empty at the start and goes with the sandbox, as the private temporary directories do; below them it need not exist. Not by the backend landlock.",
     .hostile = "temporary files do not stay"},
    {.name = "filesystem.exclude_tmpdir_env_var", .type = T::kBool, .narrow = N::kStricter, .strict = true, .field = BELLJAR_FIELD(filesystem.exclude_tmpdir_env_var), .fallback = "false",
     .risk = "none", .doc = "With tmp = \"shared\", $TMPDIR is not made writable.",
     .hostile = "$TMPDIR cannot be written to"},
    {.name = "filesystem.exclude_slash_tmp", .type = T::kBool, .narrow = N::kStricter, .strict = true, .field = BELLJAR_FIELD(filesystem.exclude_slash_tmp), .fallback = "false",
     .risk = "none", .doc = "/tmp is not made writable.",
     .hostile = "/tmp cannot be written to"},
    {.name = "filesystem.caches", .flag = "--caches", .type = T::kEnum, .values = "off|private|workspace", .narrow = N::kStricter, .field = BELLJAR_FIELD(filesystem.caches), .fallback = "private",
     .risk = "workspace: a later command of the workspace finds there what an earlier one left",
     .doc = "A writable layer over the cache directories, discarded at the end or kept for the workspace's next command; or no layer, then they are read-only.",
     .hostile = "caches are thrown away or read-only"},
    {.name = "filesystem.cache_dirs", .type = T::kPaths, .join = J::kUnion, .narrow = N::kSubset, .field = BELLJAR_FIELD(filesystem.cache_dirs), .fallback = "(well-known caches)",
     .risk = "their content is readable", .doc = "Directories that get a cache layer, beside the well-known ones; [] means none.",
     .hostile = "fewer directories have a cache layer"},
    {.name = "filesystem.siblings", .flag = "--siblings", .type = T::kEnum, .values = "hidden|shown", .narrow = N::kStricter, .field = BELLJAR_FIELD(filesystem.siblings),
     .fallback = "(hidden for create, pools and mcp --http, else shown)", .risk = "shown: what the user's other sandboxes work on can be read",
     .doc = "The workspaces of this user's other living sandboxes: out of sight, or as the other rules say.",
     .hostile = "other workspaces are hidden"},
    {.name = "filesystem.scratch", .flag = "--scratch", .type = T::kPaths, .join = J::kUnion, .narrow = N::kNever, .field = BELLJAR_FIELD(filesystem.scratch), .fallback = "[]",
     .risk = "what is written there is lost", .doc = "Directories that the command may write to as it likes: everything goes to a layer that is discarded at the end, but for what `writable_roots` or `entries` make writable below them.",
     .hostile = "nothing: it could take a layer away, and let writes through"},
    {.name = "filesystem.devices", .flag = "--device", .type = T::kPaths, .join = J::kUnion, .narrow = N::kSubset, .field = BELLJAR_FIELD(filesystem.devices), .fallback = "[]",
     .risk = "the driver behind the node", .doc = "Host device nodes opened beside the minimal /dev.",
     .hostile = "devices are missing"},

    {.name = "environment.inherit", .type = T::kEnum, .values = "none|core|all", .narrow = N::kStricter, .field = BELLJAR_FIELD(environment.inherit), .fallback = "core",
     .risk = "all: every variable that the exclude patterns miss", .doc = "Which of the caller's variables pass.",
     .hostile = "variables are missing"},
    {.name = "environment.include", .type = T::kTexts, .join = J::kUnion, .narrow = N::kSubset, .field = BELLJAR_FIELD(environment.include), .fallback = "[]", .risk = "what the variables hold",
     .doc = "Name patterns (`LC_*`) that pass besides.",
     .hostile = "variables are missing"},
    {.name = "environment.exclude", .type = T::kTexts, .join = J::kUnion, .narrow = N::kMore, .field = BELLJAR_FIELD(environment.exclude), .fallback = "(secret-looking names)", .risk = "none",
     .doc = "Name patterns that do not pass; wins over inherit and include. [] drops the built-in patterns.",
     .hostile = "variables are missing, but for those of `pass` and `set`"},
    {.name = "environment.set", .flag = "--env", .type = T::kMap, .join = J::kUnion, .narrow = N::kVariables, .field = BELLJAR_FIELD(environment.set), .fallback = "{}", .risk = "none",
     .doc = "Variables with their values.",
     .hostile = "a variable has another text, if its name steers no program that we know of"},
    {.name = "environment.pass", .flag = "--pass-env", .type = T::kTexts, .join = J::kUnion, .narrow = N::kSubset, .field = BELLJAR_FIELD(environment.pass), .fallback = "[]",
     .risk = "the secret is readable inside", .doc = "Exact names copied from the caller although a pattern excludes them.",
     .hostile = "variables are missing"},

    {.name = "network.mode", .flag = "--net", .type = T::kEnum, .values = "none|proxy|host", .narrow = N::kStricter, .field = BELLJAR_FIELD(network.mode), .fallback = "none",
     .risk = "host: every local service and everything outside", .doc = "No network, domain rules through a proxy, or the host's network.",
     .hostile = "no network, or rules where there were none"},
    {.name = "network.allow_local_binding", .flag = "--allow-local-binding", .type = T::kBool, .narrow = N::kStricter, .field = BELLJAR_FIELD(network.allow_local_binding),
     .fallback = "(true unless mode is host)", .risk = "on the host's network others can connect", .doc = "The command may listen on ports.",
     .hostile = "servers cannot listen"},
    {.name = "network.allow_unix_sockets", .flag = "--allow-unix-socket", .type = T::kPaths, .join = J::kUnion, .narrow = N::kSubset, .field = BELLJAR_FIELD(network.allow_unix_sockets), .fallback = "[]",
     .risk = "whatever serves the socket (docker.sock is root)", .doc = "Host Unix sockets that the command may connect to, by path.",
     .hostile = "sockets are refused"},
    {.name = "network.allow_all_unix_sockets", .flag = "--allow-all-unix-sockets", .type = T::kBool, .narrow = N::kStricter,
     .field = BELLJAR_FIELD(network.allow_all_unix_sockets), .fallback = "false", .risk = "every local service", .doc = "The command may connect to any Unix socket it can see.",
     .hostile = "sockets are refused"},
    {.name = "network.publish", .flag = "--publish", .type = T::kPorts, .join = J::kUnion, .narrow = N::kSubset, .field = BELLJAR_FIELD(network.publish), .fallback = "[]",
     .risk = "others on the host can connect", .doc = "Ports inside that are reachable on the host's loopback, HOST:INSIDE or one number for both.",
     .hostile = "ports are not joined"},
    {.name = "network.host_ports", .flag = "--host-port", .type = T::kPorts, .join = J::kUnion, .narrow = N::kSubset, .field = BELLJAR_FIELD(network.host_ports), .fallback = "[]",
     .risk = "the service behind the port", .doc = "Ports of the host's loopback that the command reaches on its own loopback, HOST:INSIDE or one number for both.",
     .hostile = "ports are not joined"},
    {.name = "network.allowed_domains", .flag = "--allow-domain", .type = T::kTexts, .join = J::kUnion, .narrow = N::kSubset, .field = BELLJAR_FIELD(network.allowed_domains), .fallback = "[]",
     .risk = "data can leave to these hosts", .doc = "In mode proxy: example.com, *.example.com (below only), **.example.com (both), * (any public host), an address or a range (10.0.0.0/8), each with an optional :port.",
     .hostile = "hosts are refused"},
    {.name = "network.denied_domains", .flag = "--deny-domain", .type = T::kTexts, .join = J::kUnion, .narrow = N::kMore, .field = BELLJAR_FIELD(network.denied_domains), .fallback = "[]", .risk = "none",
     .doc = "In mode proxy: refused even when allowed; same forms.",
     .hostile = "hosts are refused"},
    {.name = "network.allowed_requests", .flag = "--allow-request", .type = T::kTexts, .join = J::kUnion, .narrow = N::kSubset, .field = BELLJAR_FIELD(network.allowed_requests), .fallback = "[]",
     .risk = "data can leave in these requests", .doc = "In mode proxy: requests to a host that is not listed otherwise: `GET,HEAD example.com[:port][/path]`; `*` is every method. Of https the TLS is looked into.",
     .hostile = "requests are refused"},
    {.name = "network.methods", .flag = "--net-methods", .type = T::kEnum, .values = "limited|full", .narrow = N::kStricter, .field = BELLJAR_FIELD(network.methods), .fallback = "full",
     .risk = "data can leave in requests of every kind", .doc = "In mode proxy: full, or limited to GET, HEAD and OPTIONS; https is looked into, and what cannot be is refused.",
     .hostile = "requests are refused, and more TLS is looked into"},
    {.name = "network.proxy_auth", .flag = "--proxy-auth", .type = T::kBool, .narrow = N::kStricter, .strict = true, .field = BELLJAR_FIELD(network.proxy_auth), .fallback = "false",
     .risk = "none", .doc = "In mode proxy: the proxy asks for a credential that the environment holds; Java cannot give one. Ends `transparent`, which asks for none.",
     .hostile = "programs without the credential are refused"},
    {.name = "network.http_proxy_port", .flag = "--http-proxy-port", .type = T::kCount, .narrow = N::kNever, .field = BELLJAR_FIELD(network.http_proxy_port),
     .risk = "none", .doc = "In mode proxy: the port inside that the variables name.",
     .hostile = "nothing: it could take a port that a server inside counts on"},
    {.name = "network.socks_proxy_port", .flag = "--socks-proxy-port", .type = T::kCount, .narrow = N::kNever, .field = BELLJAR_FIELD(network.socks_proxy_port),
     .risk = "none", .doc = "In mode proxy: a further port inside for SOCKS5 clients; 3128 speaks it too.",
     .hostile = "nothing: as `network.http_proxy_port`"},
    {.name = "network.upstream_proxy", .flag = "--upstream-proxy", .type = T::kText, .narrow = N::kNever, .field = BELLJAR_FIELD(network.upstream_proxy),
     .risk = "that proxy sees every request, and resolves names again", .doc = "In mode proxy: everything leaves by this proxy: http://[USER:PASSWORD@]HOST:PORT or socks5://...",
     .hostile = "nothing: everything would leave by a proxy of its choice"},
    {.name = "network.upstream_bypass", .flag = "--upstream-bypass", .type = T::kTexts, .join = J::kUnion, .narrow = N::kNever, .field = BELLJAR_FIELD(network.upstream_bypass), .fallback = "[]", .risk = "none",
     .doc = "Hosts that leave without the upstream proxy: the forms of allowed_domains.",
     .hostile = "nothing: requests would leave past the user's proxy"},
    {.name = "network.transparent", .flag = "--transparent", .type = T::kBool, .narrow = N::kStricter, .field = BELLJAR_FIELD(network.transparent), .fallback = "true",
     .risk = "none: the same rules hold", .doc = "With mode proxy, programs that know nothing of the proxy are served too: names resolve inside, TCP is caught. On unless =false. In containers its listeners take ports 80, 443 and those of rules inside, but for published ones.",
     .hostile = "programs that know no proxy are refused"},
    {.name = "network.credentials", .flag = "--credential", .type = T::kTexts, .join = J::kUnion, .narrow = N::kNever, .field = BELLJAR_FIELD(network.credentials), .fallback = "[]",
     .risk = "the command acts at HOST as who owns the value", .doc = "In mode proxy: `NAME[=env:VARIABLE|=file:PATH] for HOST[,HOST] [in header,basic,query]` (`@` for ` for `): NAME holds a placeholder inside, and the proxy puts the value into https requests to HOST; the command never sees it.",
     .hostile = "nothing: taken out of the list, a value would be passed inside by `environment.inherit`, or its file shown"},
    {.name = "network.tls_passthrough", .flag = "--tls-passthrough", .type = T::kTexts, .join = J::kUnion, .narrow = N::kNever, .field = BELLJAR_FIELD(network.tls_passthrough), .fallback = "[]",
     .risk = "none: rules for requests then refuse the host", .doc = "In mode proxy: hosts whose TLS is never looked into (pinned certificates, client certificates); forms of allowed_domains.",
     .hostile = "nothing: a host's answer would carry a credential's value unread, on a port the list opens"},
    {.name = "network.tls_ca_file", .flag = "--tls-ca-file", .type = T::kPath, .narrow = N::kNever, .field = BELLJAR_FIELD(network.tls_ca_file),
     .risk = "servers with certificates of these roots are believed", .doc = "In mode proxy: a PEM file with roots beside the machine's, for servers whose TLS is looked into.",
     .hostile = "nothing: a server of its choice would be believed, and given the credential"},

    {.name = "limits.timeout", .flag = "--timeout", .type = T::kDuration, .narrow = N::kLower, .field = BELLJAR_FIELD(limits.timeout), .risk = "none",
     .doc = "Wall time from exec; then TERM, and KILL after kill_grace.",
     .hostile = "the command ends sooner"},
    {.name = "limits.max_timeout", .flag = "--max-timeout", .type = T::kDuration, .narrow = N::kLower, .field = BELLJAR_FIELD(limits.max_timeout), .risk = "none",
     .doc = "Cap on timeout, whoever asks for it.",
     .hostile = "the command ends sooner"},
    {.name = "limits.idle_timeout", .flag = "--idle-timeout", .type = T::kDuration, .narrow = N::kLower, .field = BELLJAR_FIELD(limits.idle_timeout), .risk = "none",
     .doc = "Ends the command after this long without output, input or cpu use.",
     .hostile = "the command ends sooner"},
    {.name = "limits.kill_grace", .flag = "--kill-grace", .type = T::kDuration, .narrow = N::kLower, .field = BELLJAR_FIELD(limits.kill_grace), .fallback = "2s", .risk = "none",
     .doc = "Time between TERM and KILL.",
     .hostile = "the command ends sooner"},
    {.name = "limits.cpus", .flag = "--cpus", .type = T::kNumber, .narrow = N::kLower, .field = BELLJAR_FIELD(limits.cpus), .risk = "none", .doc = "Processors, as a number: 1.5.",
     .hostile = "the command is slower"},
    {.name = "limits.cpu_request", .flag = "--cpu-request", .type = T::kNumber, .narrow = N::kLowerOrSet, .field = BELLJAR_FIELD(limits.cpu_request),
     .risk = "takes from other programs", .doc = "Share of the processors under contention.",
     .hostile = "the command is slower"},
    {.name = "limits.memory", .flag = "--memory", .type = T::kSize, .narrow = N::kLower, .field = BELLJAR_FIELD(limits.memory), .risk = "none",
     .doc = "Memory of the whole tree, private /tmp included.",
     .hostile = "the command is killed sooner"},
    {.name = "limits.memory_request", .flag = "--memory-request", .type = T::kSize, .narrow = N::kLowerOrSet, .field = BELLJAR_FIELD(limits.memory_request),
     .risk = "takes from other programs", .doc = "Memory that reclaim leaves alone.",
     .hostile = "the command is slower"},
    {.name = "limits.pids", .flag = "--pids", .type = T::kCount, .narrow = N::kLower, .field = BELLJAR_FIELD(limits.pids), .risk = "none", .doc = "Processes and threads at once.",
     .hostile = "programs do not start"},
    {.name = "limits.open_files", .flag = "--open-files", .type = T::kCount, .narrow = N::kLower, .field = BELLJAR_FIELD(limits.open_files), .risk = "none",
     .doc = "Open descriptors of one process.",
     .hostile = "files do not open"},
    {.name = "limits.file_size", .flag = "--file-size", .type = T::kSize, .narrow = N::kLower, .field = BELLJAR_FIELD(limits.file_size), .risk = "none", .doc = "Size of one written file.",
     .hostile = "writes fail"},
    {.name = "limits.disk", .flag = "--disk", .type = T::kSize, .narrow = N::kLower, .field = BELLJAR_FIELD(limits.disk), .risk = "none", .doc = "Growth of workspace and tmp together.",
     .hostile = "the command is stopped sooner"},
    {.name = "limits.write_quota", .flag = "--write-quota", .type = T::kSize, .narrow = N::kLower, .field = BELLJAR_FIELD(limits.write_quota), .risk = "none",
     .doc = "Bytes that file calls may write; refused by name: in a program, with_write_quota (belljar/decorators.h) does it.",
     .hostile = "writes fail"},
    {.name = "limits.egress_bytes", .flag = "--egress-bytes", .type = T::kSize, .narrow = N::kLower, .field = BELLJAR_FIELD(limits.egress_bytes), .risk = "none",
     .doc = "In mode proxy: bytes through the proxy, both ways together, 1 or more; then nothing more passes.",
     .hostile = "the network ends sooner"},
    {.name = "limits.egress_connections", .flag = "--egress-connections", .type = T::kCount, .narrow = N::kLower, .field = BELLJAR_FIELD(limits.egress_connections), .risk = "none",
     .doc = "In mode proxy: connections at one time, 1 or more; further ones wait.",
     .hostile = "connections wait"},
    {.name = "limits.egress_rate", .flag = "--egress-rate", .type = T::kSize, .narrow = N::kLower, .field = BELLJAR_FIELD(limits.egress_rate), .risk = "none",
     .doc = "In mode proxy: bytes a second, both ways together, 1 or more.",
     .hostile = "the network is slower"},
    {.name = "limits.egress_heads", .flag = "--egress-heads", .type = T::kSize, .narrow = N::kLower, .field = BELLJAR_FIELD(limits.egress_heads), .fallback = "64KiB",
     .risk = "data can leave in URLs and fields", .doc = "With network.methods limited: bytes a minute in URLs and fields of requests that the command chooses, to the hosts of each rule; what was said before counts 2. Then requests wait, and beyond 15 s are refused.",
     .hostile = "requests wait or are refused"},
    {.name = "limits.output_bytes", .flag = "--output-bytes", .type = T::kSize, .narrow = N::kLower, .field = BELLJAR_FIELD(limits.output_bytes), .risk = "none",
     .doc = "Bytes of stdout and of stderr each that are captured or passed on.",
     .hostile = "output is cut"},
    {.name = "limits.output_action", .flag = "--output-action", .type = T::kEnum, .values = "kill|drain", .narrow = N::kStricter, .field = BELLJAR_FIELD(limits.output_action), .fallback = "drain", .risk = "none",
     .doc = "Beyond output_bytes: end the command, or drop and count the rest.",
     .hostile = "the command is killed for its output"},

    {.name = "commands.allow", .type = T::kTexts, .join = J::kUnion, .narrow = N::kNever, .field = BELLJAR_FIELD(commands.allow), .fallback = "[]", .risk = "none", .doc = "Command prefixes for `belljar mcp` and `agent`: nothing else may run; `run` refuses the key.",
     .hostile = "nothing: `[]` would allow every command"},
    {.name = "commands.deny", .type = T::kTexts, .join = J::kUnion, .narrow = N::kMore, .field = BELLJAR_FIELD(commands.deny), .fallback = "[]", .risk = "none", .doc = "Command prefixes that `belljar mcp` and `agent` refuse; `run` refuses the key.",
     .hostile = "commands are forbidden; `run` refuses the key"},

    {.name = "container.image", .type = T::kText, .narrow = N::kNever, .field = BELLJAR_FIELD(container.image), .fallback = "node:20-slim",
     .risk = "the image's programs run", .doc = "The image of the backend container, which it means where nobody names a backend; `run --image` comes first.",
     .hostile = "nothing: its programs would be the command's"},
    {.name = "container.pull", .type = T::kEnum, .values = "never|missing|always", .narrow = N::kNever, .field = BELLJAR_FIELD(container.pull), .fallback = "missing",
     .risk = "always: the registry decides what runs", .doc = "When the backend container asks the registry for the image; `run --pull` comes first.",
     .hostile = "nothing: an image would change, or not"},

    {.name = "permission.mode", .type = T::kEnum, .values = "plan|default|auto-edit|yolo", .narrow = N::kNever, .field = BELLJAR_FIELD(permission.mode),
     .risk = "yolo: what a model proposes runs without a question", .doc = "What `belljar mcp` and `agent` ask about: --permission and --mode come first, the rules files' [permission] after it. `run` and `create` ask nothing, and refuse plan: `--policy read-only` says it for them.",
     .hostile = "nothing: it would answer for the user"},
    {.name = "permission.auto_allow_bash_if_sandboxed", .type = T::kBool, .narrow = N::kNever, .field = BELLJAR_FIELD(permission.auto_allow_bash_if_sandboxed),
     .risk = "true: a command that no rule and no check speaks about runs without a question", .doc = "`belljar mcp` and `agent` ask about no command for being one, since the sandbox holds it.",
     .hostile = "nothing: it would answer for the user"},
    {.name = "permission.ask_for_reads", .type = T::kBool, .narrow = N::kNever, .field = BELLJAR_FIELD(permission.ask_for_reads),
     .risk = "false: commands known to only read run without a question", .doc = "`belljar mcp` and `agent` ask also about commands that are known to only read.",
     .hostile = "nothing: it would answer for the user"},

    {.name = "ignore_violations.file", .type = T::kTexts, .join = J::kUnion, .narrow = N::kSubset, .field = BELLJAR_FIELD(ignore_violations.file), .fallback = "[]",
     .risk = "an attack among what is kept out goes unseen",
     .doc = "Refused acts on paths that reports leave out and only count: `GLOB`, `GLOB on OPERATION`, `GLOB by PROGRAM`. Grants nothing: they stay refused.",
     .hostile = "more is reported"},
    {.name = "ignore_violations.network", .type = T::kTexts, .join = J::kUnion, .narrow = N::kSubset, .field = BELLJAR_FIELD(ignore_violations.network), .fallback = "[]",
     .risk = "an attack among what is kept out goes unseen",
     .doc = "Refused connections that reports leave out and only count: `HOST:PORT`, `*.example.com:443`, `localhost:*`. Grants nothing: they stay refused.",
     .hostile = "more is reported"},
};
#undef BELLJAR_FIELD

using How = Alias::How;
constexpr std::string_view kNoSecrets = "a name says nothing outside of its cluster: `run --registry-user NAME --registry-password-file FILE`, ContainerOptions::login (belljar/container.h), or pull the image with the engine's own client before";
constexpr std::string_view kNoClouds = "an account is no rule of a policy: keys stand in the environment, a region there or in a flag; `run --backend NAME --help`";
constexpr std::string_view kNoAlerts = "what may be used at most is limits.cpus, limits.memory and limits.disk; alerts are raised by a program that embeds the library: EventOptions::alerts (belljar/events.h), and Webhook (belljar/webhook.h) for a URL";
constexpr std::string_view kMitm = "TLS is looked into where a rule needs it: network.allowed_requests, network.credentials, network.methods";
constexpr std::string_view kReads = "write filesystem.readonly_paths for what may be read alone, and filesystem.blocked_paths for what may not be read";
constexpr Alias kAliases[] = {
    {"cpu_limit", "limits.cpus"}, {"limits.cpu_limit", "limits.cpus"}, {"cpu_request", "limits.cpu_request"},
    {"cpu", "limits.cpus"}, {"memory", "limits.memory"},
    {"memory_limit", "limits.memory", How::kMegabytes}, {"limits.memory_limit", "limits.memory", How::kMegabytes},
    {"memory_request", "limits.memory_request", How::kMegabytes},
    {"disk_limit", "limits.disk", How::kMegabytes}, {"limits.disk_limit", "limits.disk", How::kMegabytes},
    {"max_disk_usage", "limits.disk"}, {"limits.max_disk_usage", "limits.disk"},
    {"timeout", "limits.timeout"}, {"idle_timeout", "limits.idle_timeout"},
    {"network_mode", "network.mode", How::kNetworkMode}, {"network.network_mode", "network.mode", How::kNetworkMode},
    {"network_access", "network.mode", How::kNetworkBool},
    {"allowed_domains", "network.allowed_domains"}, {"blocked_domains", "network.denied_domains"}, {"network.blocked_domains", "network.denied_domains"},
    {"denied_domains", "network.denied_domains"},
    {"writable_roots", "filesystem.writable_roots"}, {"readonly_paths", "filesystem.readonly_paths"}, {"blocked_paths", "filesystem.blocked_paths"},
    {"volumes", "filesystem.volumes"}, {"temp_dir", "filesystem.temp_dir"},
    {"exclude_tmpdir_env_var", "filesystem.exclude_tmpdir_env_var"}, {"exclude_slash_tmp", "filesystem.exclude_slash_tmp"},
    {"devices", "filesystem.devices"},
    {"env_whitelist", "environment.include", How::kOnlyThese}, {"environment.env_whitelist", "environment.include", How::kOnlyThese},
    {"env_blacklist", "environment.exclude"}, {"environment.env_blacklist", "environment.exclude"},
    {"allowed_commands", "commands.allow"}, {"blocked_commands", "commands.deny"},
    {"commands.allowed_commands", "commands.allow"}, {"commands.blocked_commands", "commands.deny"},
    {"auto_clean_temp", "filesystem.clean_temp_dir"},
    {"auto_clean", "filesystem.clean_temp_dir", How::kMustBeTrue, "nothing of a sandbox is ever left behind"},
    {"clean_on_stop", "filesystem.clean_temp_dir", How::kMustBeTrue, "nothing of a sandbox is ever left behind"},
    {"http_proxy", "network.upstream_proxy"}, {"network.http_proxy", "network.upstream_proxy"},
    {"network.allowLocalBinding", "network.allow_local_binding"}, {"network.allowUnixSockets", "network.allow_unix_sockets"},
    {"network.allowAllUnixSockets", "network.allow_all_unix_sockets"},
    {"network.httpProxyPort", "", How::kRefused, "a proxy to leave by is network.upstream_proxy, a port inside for ours network.http_proxy_port"},
    {"network.socksProxyPort", "", How::kRefused, "a proxy to leave by is network.upstream_proxy, a port inside for ours network.socks_proxy_port"},
    {"mitm", "", How::kRefused, kMitm}, {"network.mitm", "", How::kRefused, kMitm},
    {"read_only_access", "", How::kRefused, kReads}, {"filesystem.read_only_access", "", How::kRefused, kReads},
    {"use_legacy_landlock", "", How::kRefused, "write backend = \"landlock\""},
    {"persistent_volume", "filesystem.writable_roots", How::kOneOf},
    {"restore_on_start", "", How::kMustBeTrue, "a program that embeds the library empties it: SandboxConfig::on_start (belljar/sandbox.h)"},
    {"use_docker", "backend", How::kDocker}, {"image", "container.image"}, {"image_pull_policy", "container.pull", How::kPullPolicy},
    {"image_pull_secrets", "", How::kRefused, kNoSecrets},
    {"region", "", How::kRefused, kNoClouds}, {"access_key", "", How::kRefused, kNoClouds}, {"secret_key", "", How::kRefused, kNoClouds},
    {"access_key_id", "", How::kRefused, kNoClouds}, {"secret_access_key", "", How::kRefused, kNoClouds},
    {"instance_type", "", How::kRefused, "the size of a cloud's machine is said by its template or image, or by --instance-type of the volcengine backend"},
    {"auto_destroy", "", How::kRefused, "a cloud's sandbox ends with its run; --on-stop and --lifetime of its backend say else"},
    {"alert_cpu_threshold", "", How::kRefused, kNoAlerts}, {"alert_memory_threshold", "", How::kRefused, kNoAlerts},
    {"alert_disk_threshold", "", How::kRefused, kNoAlerts}, {"alert_webhook", "", How::kRefused, kNoAlerts}, {"webhook", "", How::kRefused, kNoAlerts},
    {"ignoreViolations.file", "ignore_violations.file"}, {"ignoreViolations.network", "ignore_violations.network"},
};
// clang-format on

}  // namespace

std::span<const Key> keys() noexcept { return kKeys; }
std::span<const Alias> aliases() noexcept { return kAliases; }

const Key* find_key(std::string_view name) noexcept {
  const auto* found = std::ranges::find(kKeys, name, &Key::name);
  return found == std::end(kKeys) ? nullptr : found;
}

const Alias* find_alias(std::string_view name) noexcept {
  const auto* found = std::ranges::find(kAliases, name, &Alias::name);
  // No policy has an alert, whatever it is called.
  if (found == std::end(kAliases) && name.starts_with("alert_")) found = std::ranges::find(kAliases, kNoAlerts, &Alias::why);
  return found == std::end(kAliases) ? nullptr : found;
}

bool is_table(std::string_view name) noexcept {
  constexpr std::string_view kTables[] = {"filesystem", "environment", "network",           "limits",          "commands",
                                          "container",  "permission",  "ignore_violations", "ignoreViolations"};
  return std::ranges::find(kTables, name) != std::end(kTables);
}

std::string_view expected(const Key& key) noexcept {
  switch (key.type) {
    case Type::kBool:
      return "true or false";
    case Type::kNumber:
      return "a number such as 1.5";
    case Type::kCount:
      return "a whole number such as 256";
    case Type::kSize:
      return "a size such as \"512MiB\" (a bare number is bytes)";
    case Type::kDuration:
      return "a duration such as \"30s\" (a bare number is seconds)";
    case Type::kEnum:
      return key.values;
    case Type::kText:
      return "text in quotes";
    case Type::kPath:
      return "a path in quotes";
    case Type::kTexts:
      return "a list of text such as [\"a\", \"b\"]";
    case Type::kPaths:
      return "a list of paths such as [\"/a\", \"~/b\"]";
    case Type::kPorts:
      return "a list of ports such as [3000, 8080]";
    case Type::kMap:
      return "a table of text such as {NAME = \"value\"}";
    case Type::kEntries:
      return "a list of {path or glob, access}";
    case Type::kVolumes:
      return "a list of {source, target, readonly}";
  }
  return "";
}

}  // namespace belljar::policy
