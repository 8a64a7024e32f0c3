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
    // name, flag, type, values, join, narrow, strict, field, fallback, risk, doc, hostile
    {"profile", "", T::kText, "", J::kReplace, N::kNever, false, BELLJAR_FIELD(profile), "workspace-write",
     "the profile's own", "Named policy to start from: read-only, workspace-write, ci-strict, dev, build, agent-claude, agent-codex, agent-gemini, agent-opencode, agent-generic.",
     "nothing: a word of its own would choose the trusted base"},
    {"mode", "", T::kEnum, "read-only|workspace-write|danger-full-access|external-sandbox", J::kReplace, N::kStricter, false,
     BELLJAR_FIELD(mode), "workspace-write", "danger-full-access drops file and network rules; external-sandbox enforces only timeouts and output caps",
     "What kind of sandbox; set to read-only it also drops the write rules of lower layers.",
     "writes are refused; a value in force, said again, moves no layer's rules"},
    {"backend", "--backend", T::kEnum, "native|landlock|container|e2b|aliyun|volcengine|auto", J::kReplace, N::kNever, false, BELLJAR_FIELD(backend), "native",
     "landlock alone hides less; a container engine is trusted with all of the machine; e2b, aliyun and volcengine send the command to a machine of somebody else",
     "How isolation is made; container needs an engine and an image (--image), e2b, aliyun and volcengine an account (E2B_API_KEY; AGENTBAY_API_KEY; VOLC_ACCESS_KEY_ID and VOLC_SECRET_ACCESS_KEY); auto takes landlock where user namespaces are refused, and a container where isolation asks for more.",
     "nothing: it could choose weaker isolation or a machine elsewhere"},
    {"fallback", "--fallback", T::kTexts, "", J::kReplace, N::kNever, false, BELLJAR_FIELD(fallback), "[]",
     "as `backend`; what a machine elsewhere sees leaves this one", "Backends that are tried in this order when `backend` cannot start, each held to the same requirements; never local or mock, clouds only when named. For run, mcp and agent (clouds: run alone); create and learn take `backend` alone.",
     "nothing; while a project file has a say, no fallback leads elsewhere"},
    {"isolation", "--isolation", T::kEnum, "vm|container|namespace|landlock|guard-rails|none", J::kReplace, N::kNever, false, BELLJAR_FIELD(isolation), "none",
     "none", "What must at least stand between the command and this machine, or the start fails; with backend auto, vm and container ask an engine.",
     "nothing: with `auto` it would choose the backend"},
    {"require", "--require", T::kTexts, "", J::kUnion, N::kMore, false, BELLJAR_FIELD(require), "[]", "none",
     "Clauses of the enforcement report that must read `full`, or the start fails.",
     "the start fails, or a fallback that the user named comes sooner"},
    {"accept", "--accept", T::kTexts, "", J::kUnion, N::kSubset, false, BELLJAR_FIELD(accept), "[]", "the clause may hold less than asked for",
     "Clauses that may read less than the policy asks; named loudly at start.",
     "the start fails where the user would have let it pass"},
    {"enable_weaker_nested_sandbox", "--enable-weaker-nested-sandbox", T::kBool, "", J::kReplace, N::kStricter, false,
     BELLJAR_FIELD(enable_weaker_nested_sandbox), "false", "parts that cannot nest are missing", "Inside another sandbox, drop what cannot nest, and report it.",
     "the start fails inside another sandbox"},
    {"allow_nested_userns", "--allow-nested-userns", T::kBool, "", J::kReplace, N::kStricter, false, BELLJAR_FIELD(allow_nested_userns), "false",
     "kernel code reachable only with namespaced capabilities", "The command may make user namespaces (Chromium, Bazel, bwrap), without a /proc of their own.",
     "programs that nest fail"},
    {"allow_root_uid", "--allow-root-uid", T::kBool, "", J::kReplace, N::kStricter, false, BELLJAR_FIELD(allow_root_uid), "false",
     "kernel uid 0 passes many checks without capabilities", "As root on a file system that cannot idmap: run with kernel uid 0, loudly.",
     "the start fails where only kernel uid 0 would do"},

    {"filesystem.entries", "", T::kEntries, "", J::kEntries, N::kEntries, false, BELLJAR_FIELD(filesystem.entries), "[]", "what they open",
     "Rules {path | glob, access = read | write | none}; the most specific path wins, ties resolve none > write > read.",
     "paths are closed; what it says may be read or written yields to what any trusted layer says, later ones too"},
    {"filesystem.writable_roots", "--write", T::kPaths, "", J::kEntries, N::kEntries, false, BELLJAR_FIELD(filesystem.entries), "[]",
     "the command changes these files for good", "Paths the command may write besides the workspace.",
     "as `filesystem.entries`"},
    {"filesystem.readonly_paths", "--read", T::kPaths, "", J::kEntries, N::kEntries, false, BELLJAR_FIELD(filesystem.entries), "[]",
     "opens a hidden path for reading", "Paths the command may read and not write.",
     "as `filesystem.entries`"},
    {"filesystem.blocked_paths", "--hide", T::kPaths, "", J::kEntries, N::kEntries, false, BELLJAR_FIELD(filesystem.entries), "[]", "none",
     "Paths that answer EACCES to opens, listings and changes, also when they appear later (times, owner and extended attributes too, with another errno; not by the backend landlock). In a container a name that does not exist is refused.",
     "as `filesystem.entries`"},
    {"filesystem.volumes", "", T::kVolumes, "", J::kUnion, N::kSubset, false, BELLJAR_FIELD(filesystem.volumes), "[]",
     "with readonly = false the command changes the source", "Host paths shown at another place: {source, target, readonly = true}.",
     "a volume is missing or read-only; what lies under it shows by its own rules"},
    {"filesystem.protect", "", T::kEnum, "all|default|none", J::kReplace, N::kStricter, false, BELLJAR_FIELD(filesystem.protect), "default",
     "none: a later git, editor or agent outside may run planted code", "Git control and agent or editor names inside writable roots stay as they are.",
     "more names are kept"},
    {"filesystem.allow_git_removal", "--allow-git-removal", T::kBool, "", J::kReplace, N::kStricter, false, BELLJAR_FIELD(filesystem.allow_git_removal), "false",
     "a slip (`rm -rf .git`) takes the history with it", "Programs other than git may remove the workspace's own .git; in the layers of a transaction they always may.",
     "a removal is refused"},
    {"filesystem.secrets", "", T::kEnum, "default|none", J::kReplace, N::kStricter, false, BELLJAR_FIELD(filesystem.secrets), "default",
     "none: keys and tokens can be read", "Hides the built-in list of secret paths (~/.ssh, ~/.aws ...).",
     "the list of secrets is hidden"},
    {"filesystem.tmp", "", T::kEnum, "private|shared", J::kReplace, N::kStricter, false, BELLJAR_FIELD(filesystem.tmp), "private",
     "shared: other programs' files and sockets in /tmp", "Private /tmp, /var/tmp, /dev/shm and $XDG_RUNTIME_DIR, or the host's /tmp, /var/tmp and $TMPDIR.",
     "a private /tmp, empty at the start"},
    {"filesystem.tmp_size", "", T::kSize, "", J::kReplace, N::kLower, false, BELLJAR_FIELD(filesystem.tmp_size), "1GiB", "memory",
     "Size of the private temporary directories together.",
     "the temporary directories are full sooner"},
    {"filesystem.temp_dir", "", T::kPath, "", J::kReplace, N::kNever, false, BELLJAR_FIELD(filesystem.temp_dir), "",
     "the command changes files there for good", "A host directory that is writable and becomes $TMPDIR.",
     "nothing: it would open a directory for writing"},
    {"filesystem.clean_temp_dir", "", T::kBool, "", J::kReplace, N::kStricter, true, BELLJAR_FIELD(filesystem.clean_temp_dir), "false",
     "none", "temp_dir is empty at the start and goes with the sandbox, as the private temporary directories do; below them it need not exist. Not by the backend landlock.",
     "temporary files do not stay"},
    {"filesystem.exclude_tmpdir_env_var", "", T::kBool, "", J::kReplace, N::kStricter, true, BELLJAR_FIELD(filesystem.exclude_tmpdir_env_var), "false",
     "none", "With tmp = \"shared\", $TMPDIR is not made writable.",
     "$TMPDIR cannot be written to"},
    {"filesystem.exclude_slash_tmp", "", T::kBool, "", J::kReplace, N::kStricter, true, BELLJAR_FIELD(filesystem.exclude_slash_tmp), "false",
     "none", "/tmp is not made writable.",
     "/tmp cannot be written to"},
    {"filesystem.caches", "--caches", T::kEnum, "off|private|workspace", J::kReplace, N::kStricter, false, BELLJAR_FIELD(filesystem.caches), "private",
     "workspace: a later command of the workspace finds there what an earlier one left",
     "A writable layer over the cache directories, discarded at the end or kept for the workspace's next command; or no layer, then they are read-only.",
     "caches are thrown away or read-only"},
    {"filesystem.cache_dirs", "", T::kPaths, "", J::kUnion, N::kSubset, false, BELLJAR_FIELD(filesystem.cache_dirs), "(well-known caches)",
     "their content is readable", "Directories that get a cache layer, beside the well-known ones; [] means none.",
     "fewer directories have a cache layer"},
    {"filesystem.siblings", "--siblings", T::kEnum, "hidden|shown", J::kReplace, N::kStricter, false, BELLJAR_FIELD(filesystem.siblings),
     "(hidden for create, pools and mcp --http, else shown)", "shown: what the user's other sandboxes work on can be read",
     "The workspaces of this user's other living sandboxes: out of sight, or as the other rules say.",
     "other workspaces are hidden"},
    {"filesystem.scratch", "--scratch", T::kPaths, "", J::kUnion, N::kNever, false, BELLJAR_FIELD(filesystem.scratch), "[]",
     "what is written there is lost", "Directories that the command may write to as it likes: everything goes to a layer that is discarded at the end, but for what `writable_roots` or `entries` make writable below them.",
     "nothing: it could take a layer away, and let writes through"},
    {"filesystem.devices", "--device", T::kPaths, "", J::kUnion, N::kSubset, false, BELLJAR_FIELD(filesystem.devices), "[]",
     "the driver behind the node", "Host device nodes opened beside the minimal /dev.",
     "devices are missing"},

    {"environment.inherit", "", T::kEnum, "none|core|all", J::kReplace, N::kStricter, false, BELLJAR_FIELD(environment.inherit), "core",
     "all: every variable that the exclude patterns miss", "Which of the caller's variables pass.",
     "variables are missing"},
    {"environment.include", "", T::kTexts, "", J::kUnion, N::kSubset, false, BELLJAR_FIELD(environment.include), "[]", "what the variables hold",
     "Name patterns (`LC_*`) that pass besides.",
     "variables are missing"},
    {"environment.exclude", "", T::kTexts, "", J::kUnion, N::kMore, false, BELLJAR_FIELD(environment.exclude), "(secret-looking names)", "none",
     "Name patterns that do not pass; wins over inherit and include. [] drops the built-in patterns.",
     "variables are missing, but for those of `pass` and `set`"},
    {"environment.set", "--env", T::kMap, "", J::kUnion, N::kVariables, false, BELLJAR_FIELD(environment.set), "{}", "none",
     "Variables with their values.",
     "a variable has another text, if its name steers no program that we know of"},
    {"environment.pass", "--pass-env", T::kTexts, "", J::kUnion, N::kSubset, false, BELLJAR_FIELD(environment.pass), "[]",
     "the secret is readable inside", "Exact names copied from the caller although a pattern excludes them.",
     "variables are missing"},

    {"network.mode", "--net", T::kEnum, "none|proxy|host", J::kReplace, N::kStricter, false, BELLJAR_FIELD(network.mode), "none",
     "host: every local service and everything outside", "No network, domain rules through a proxy, or the host's network.",
     "no network, or rules where there were none"},
    {"network.allow_local_binding", "--allow-local-binding", T::kBool, "", J::kReplace, N::kStricter, false, BELLJAR_FIELD(network.allow_local_binding),
     "(true unless mode is host)", "on the host's network others can connect", "The command may listen on ports.",
     "servers cannot listen"},
    {"network.allow_unix_sockets", "--allow-unix-socket", T::kPaths, "", J::kUnion, N::kSubset, false, BELLJAR_FIELD(network.allow_unix_sockets), "[]",
     "whatever serves the socket (docker.sock is root)", "Host Unix sockets that the command may connect to, by path.",
     "sockets are refused"},
    {"network.allow_all_unix_sockets", "--allow-all-unix-sockets", T::kBool, "", J::kReplace, N::kStricter, false,
     BELLJAR_FIELD(network.allow_all_unix_sockets), "false", "every local service", "The command may connect to any Unix socket it can see.",
     "sockets are refused"},
    {"network.publish", "--publish", T::kPorts, "", J::kUnion, N::kSubset, false, BELLJAR_FIELD(network.publish), "[]",
     "others on the host can connect", "Ports inside that are reachable on the host's loopback, HOST:INSIDE or one number for both.",
     "ports are not joined"},
    {"network.host_ports", "--host-port", T::kPorts, "", J::kUnion, N::kSubset, false, BELLJAR_FIELD(network.host_ports), "[]",
     "the service behind the port", "Ports of the host's loopback that the command reaches on its own loopback, HOST:INSIDE or one number for both.",
     "ports are not joined"},
    {"network.allowed_domains", "--allow-domain", T::kTexts, "", J::kUnion, N::kSubset, false, BELLJAR_FIELD(network.allowed_domains), "[]",
     "data can leave to these hosts", "In mode proxy: example.com, *.example.com (below only), **.example.com (both), * (any public host), an address or a range (10.0.0.0/8), each with an optional :port.",
     "hosts are refused"},
    {"network.denied_domains", "--deny-domain", T::kTexts, "", J::kUnion, N::kMore, false, BELLJAR_FIELD(network.denied_domains), "[]", "none",
     "In mode proxy: refused even when allowed; same forms.",
     "hosts are refused"},
    {"network.allowed_requests", "--allow-request", T::kTexts, "", J::kUnion, N::kSubset, false, BELLJAR_FIELD(network.allowed_requests), "[]",
     "data can leave in these requests", "In mode proxy: requests to a host that is not listed otherwise: `GET,HEAD example.com[:port][/path]`; `*` is every method. Of https the TLS is looked into.",
     "requests are refused"},
    {"network.methods", "--net-methods", T::kEnum, "limited|full", J::kReplace, N::kStricter, false, BELLJAR_FIELD(network.methods), "full",
     "data can leave in requests of every kind", "In mode proxy: full, or limited to GET, HEAD and OPTIONS; https is looked into, and what cannot be is refused.",
     "requests are refused, and more TLS is looked into"},
    {"network.proxy_auth", "--proxy-auth", T::kBool, "", J::kReplace, N::kStricter, true, BELLJAR_FIELD(network.proxy_auth), "false",
     "none", "In mode proxy: the proxy asks for a credential that the environment holds; Java cannot give one. Ends `transparent`, which asks for none.",
     "programs without the credential are refused"},
    {"network.http_proxy_port", "--http-proxy-port", T::kCount, "", J::kReplace, N::kNever, false, BELLJAR_FIELD(network.http_proxy_port),
     "", "none", "In mode proxy: the port inside that the variables name.",
     "nothing: it could take a port that a server inside counts on"},
    {"network.socks_proxy_port", "--socks-proxy-port", T::kCount, "", J::kReplace, N::kNever, false, BELLJAR_FIELD(network.socks_proxy_port),
     "", "none", "In mode proxy: a further port inside for SOCKS5 clients; 3128 speaks it too.",
     "nothing: as `network.http_proxy_port`"},
    {"network.upstream_proxy", "--upstream-proxy", T::kText, "", J::kReplace, N::kNever, false, BELLJAR_FIELD(network.upstream_proxy), "",
     "that proxy sees every request, and resolves names again", "In mode proxy: everything leaves by this proxy: http://[USER:PASSWORD@]HOST:PORT or socks5://...",
     "nothing: everything would leave by a proxy of its choice"},
    {"network.upstream_bypass", "--upstream-bypass", T::kTexts, "", J::kUnion, N::kNever, false, BELLJAR_FIELD(network.upstream_bypass), "[]", "none",
     "Hosts that leave without the upstream proxy: the forms of allowed_domains.",
     "nothing: requests would leave past the user's proxy"},
    {"network.transparent", "--transparent", T::kBool, "", J::kReplace, N::kStricter, false, BELLJAR_FIELD(network.transparent), "true",
     "none: the same rules hold", "With mode proxy, programs that know nothing of the proxy are served too: names resolve inside, TCP is caught. On unless =false. In containers its listeners take ports 80, 443 and those of rules inside, but for published ones.",
     "programs that know no proxy are refused"},
    {"network.credentials", "--credential", T::kTexts, "", J::kUnion, N::kNever, false, BELLJAR_FIELD(network.credentials), "[]",
     "the command acts at HOST as who owns the value", "In mode proxy: `NAME[=env:VARIABLE|=file:PATH] for HOST[,HOST] [in header,basic,query]` (`@` for ` for `): NAME holds a placeholder inside, and the proxy puts the value into https requests to HOST; the command never sees it.",
     "nothing: taken out of the list, a value would be passed inside by `environment.inherit`, or its file shown"},
    {"network.tls_passthrough", "--tls-passthrough", T::kTexts, "", J::kUnion, N::kNever, false, BELLJAR_FIELD(network.tls_passthrough), "[]",
     "none: rules for requests then refuse the host", "In mode proxy: hosts whose TLS is never looked into (pinned certificates, client certificates); forms of allowed_domains.",
     "nothing: a host's answer would carry a credential's value unread, on a port the list opens"},
    {"network.tls_ca_file", "--tls-ca-file", T::kPath, "", J::kReplace, N::kNever, false, BELLJAR_FIELD(network.tls_ca_file), "",
     "servers with certificates of these roots are believed", "In mode proxy: a PEM file with roots beside the machine's, for servers whose TLS is looked into.",
     "nothing: a server of its choice would be believed, and given the credential"},

    {"limits.timeout", "--timeout", T::kDuration, "", J::kReplace, N::kLower, false, BELLJAR_FIELD(limits.timeout), "", "none",
     "Wall time from exec; then TERM, and KILL after kill_grace.",
     "the command ends sooner"},
    {"limits.max_timeout", "--max-timeout", T::kDuration, "", J::kReplace, N::kLower, false, BELLJAR_FIELD(limits.max_timeout), "", "none",
     "Cap on timeout, whoever asks for it.",
     "the command ends sooner"},
    {"limits.idle_timeout", "--idle-timeout", T::kDuration, "", J::kReplace, N::kLower, false, BELLJAR_FIELD(limits.idle_timeout), "", "none",
     "Ends the command after this long without output, input or cpu use.",
     "the command ends sooner"},
    {"limits.kill_grace", "--kill-grace", T::kDuration, "", J::kReplace, N::kLower, false, BELLJAR_FIELD(limits.kill_grace), "2s", "none",
     "Time between TERM and KILL.",
     "the command ends sooner"},
    {"limits.cpus", "--cpus", T::kNumber, "", J::kReplace, N::kLower, false, BELLJAR_FIELD(limits.cpus), "", "none", "Processors, as a number: 1.5.",
     "the command is slower"},
    {"limits.cpu_request", "--cpu-request", T::kNumber, "", J::kReplace, N::kLowerOrSet, false, BELLJAR_FIELD(limits.cpu_request), "",
     "takes from other programs", "Share of the processors under contention.",
     "the command is slower"},
    {"limits.memory", "--memory", T::kSize, "", J::kReplace, N::kLower, false, BELLJAR_FIELD(limits.memory), "", "none",
     "Memory of the whole tree, private /tmp included.",
     "the command is killed sooner"},
    {"limits.memory_request", "--memory-request", T::kSize, "", J::kReplace, N::kLowerOrSet, false, BELLJAR_FIELD(limits.memory_request), "",
     "takes from other programs", "Memory that reclaim leaves alone.",
     "the command is slower"},
    {"limits.pids", "--pids", T::kCount, "", J::kReplace, N::kLower, false, BELLJAR_FIELD(limits.pids), "", "none", "Processes and threads at once.",
     "programs do not start"},
    {"limits.open_files", "--open-files", T::kCount, "", J::kReplace, N::kLower, false, BELLJAR_FIELD(limits.open_files), "", "none",
     "Open descriptors of one process.",
     "files do not open"},
    {"limits.file_size", "--file-size", T::kSize, "", J::kReplace, N::kLower, false, BELLJAR_FIELD(limits.file_size), "", "none", "Size of one written file.",
     "writes fail"},
    {"limits.disk", "--disk", T::kSize, "", J::kReplace, N::kLower, false, BELLJAR_FIELD(limits.disk), "", "none", "Growth of workspace and tmp together.",
     "the command is stopped sooner"},
    {"limits.write_quota", "--write-quota", T::kSize, "", J::kReplace, N::kLower, false, BELLJAR_FIELD(limits.write_quota), "", "none",
     "Bytes that file calls may write; refused by name: in a program, with_write_quota (belljar/decorators.h) does it.",
     "writes fail"},
    {"limits.egress_bytes", "--egress-bytes", T::kSize, "", J::kReplace, N::kLower, false, BELLJAR_FIELD(limits.egress_bytes), "", "none",
     "In mode proxy: bytes through the proxy, both ways together, 1 or more; then nothing more passes.",
     "the network ends sooner"},
    {"limits.egress_connections", "--egress-connections", T::kCount, "", J::kReplace, N::kLower, false, BELLJAR_FIELD(limits.egress_connections), "", "none",
     "In mode proxy: connections at one time, 1 or more; further ones wait.",
     "connections wait"},
    {"limits.egress_rate", "--egress-rate", T::kSize, "", J::kReplace, N::kLower, false, BELLJAR_FIELD(limits.egress_rate), "", "none",
     "In mode proxy: bytes a second, both ways together, 1 or more.",
     "the network is slower"},
    {"limits.egress_heads", "--egress-heads", T::kSize, "", J::kReplace, N::kLower, false, BELLJAR_FIELD(limits.egress_heads), "64KiB",
     "data can leave in URLs and fields", "With network.methods limited: bytes a minute in URLs and fields of requests that the command chooses, to the hosts of each rule; what was said before counts 2. Then requests wait, and beyond 15 s are refused.",
     "requests wait or are refused"},
    {"limits.output_bytes", "--output-bytes", T::kSize, "", J::kReplace, N::kLower, false, BELLJAR_FIELD(limits.output_bytes), "", "none",
     "Bytes of stdout and of stderr each that are captured or passed on.",
     "output is cut"},
    {"limits.output_action", "--output-action", T::kEnum, "kill|drain", J::kReplace, N::kStricter, false, BELLJAR_FIELD(limits.output_action), "drain", "none",
     "Beyond output_bytes: end the command, or drop and count the rest.",
     "the command is killed for its output"},

    {"commands.allow", "", T::kTexts, "", J::kUnion, N::kNever, false, BELLJAR_FIELD(commands.allow), "[]", "none", "Command prefixes for `belljar mcp` and `agent`: nothing else may run; `run` refuses the key.",
     "nothing: `[]` would allow every command"},
    {"commands.deny", "", T::kTexts, "", J::kUnion, N::kMore, false, BELLJAR_FIELD(commands.deny), "[]", "none", "Command prefixes that `belljar mcp` and `agent` refuse; `run` refuses the key.",
     "commands are forbidden; `run` refuses the key"},

    {"container.image", "", T::kText, "", J::kReplace, N::kNever, false, BELLJAR_FIELD(container.image), "node:20-slim",
     "the image's programs run", "The image of the backend container, which it means where nobody names a backend; `run --image` comes first.",
     "nothing: its programs would be the command's"},
    {"container.pull", "", T::kEnum, "never|missing|always", J::kReplace, N::kNever, false, BELLJAR_FIELD(container.pull), "missing",
     "always: the registry decides what runs", "When the backend container asks the registry for the image; `run --pull` comes first.",
     "nothing: an image would change, or not"},

    {"permission.mode", "", T::kEnum, "plan|default|auto-edit|yolo", J::kReplace, N::kNever, false, BELLJAR_FIELD(permission.mode), "",
     "yolo: what a model proposes runs without a question", "What `belljar mcp` and `agent` ask about: --permission and --mode come first, the rules files' [permission] after it. `run` and `create` ask nothing, and refuse plan: `--policy read-only` says it for them.",
     "nothing: it would answer for the user"},
    {"permission.auto_allow_bash_if_sandboxed", "", T::kBool, "", J::kReplace, N::kNever, false, BELLJAR_FIELD(permission.auto_allow_bash_if_sandboxed), "",
     "true: a command that no rule and no check speaks about runs without a question", "`belljar mcp` and `agent` ask about no command for being one, since the sandbox holds it.",
     "nothing: it would answer for the user"},
    {"permission.ask_for_reads", "", T::kBool, "", J::kReplace, N::kNever, false, BELLJAR_FIELD(permission.ask_for_reads), "",
     "false: commands known to only read run without a question", "`belljar mcp` and `agent` ask also about commands that are known to only read.",
     "nothing: it would answer for the user"},

    {"ignore_violations.file", "", T::kTexts, "", J::kUnion, N::kSubset, false, BELLJAR_FIELD(ignore_violations.file), "[]",
     "an attack among what is kept out goes unseen",
     "Refused acts on paths that reports leave out and only count: `GLOB`, `GLOB on OPERATION`, `GLOB by PROGRAM`. Grants nothing: they stay refused.",
     "more is reported"},
    {"ignore_violations.network", "", T::kTexts, "", J::kUnion, N::kSubset, false, BELLJAR_FIELD(ignore_violations.network), "[]",
     "an attack among what is kept out goes unseen",
     "Refused connections that reports leave out and only count: `HOST:PORT`, `*.example.com:443`, `localhost:*`. Grants nothing: they stay refused.",
     "more is reported"},
};
#undef BELLJAR_FIELD

using How = Alias::How;
constexpr std::string_view kNoSecrets = "a name says nothing outside of its cluster: `run --registry-user NAME --registry-password-file FILE`, ContainerOptions::login (belljar/container.h), or pull the image with the engine's own client before";
constexpr std::string_view kNoClouds = "an account is no rule of a policy: keys stand in the environment, a region there or in a flag; `run --backend NAME --help`";
constexpr std::string_view kNoAlerts = "alerts are raised by a program that embeds the library: EventOptions::alerts (belljar/events.h), and Webhook (belljar/webhook.h) for a URL";
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
