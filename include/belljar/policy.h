// What a sandbox may do, as a value: copyable, comparable, no system calls. Every key here exists
// under the same name in TOML, in JSON, and (with dashes) as a flag.
//
// Empty list means none, never all. Unset optionals mean "no limit asked for". Safe from any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/result.h"
#include "belljar/units.h"

namespace belljar {

enum class Mode { kReadOnly, kWorkspaceWrite, kDangerFullAccess, kExternalSandbox };

// Ties on the same path resolve none > write > read.
enum class Access { kRead, kWrite, kNone };

// Where a value came from: for `policy explain`, for violations, for error messages.
struct Origin {
  std::string layer;  // "built-in", "system", "user", "project", "policy" (--policy FILE), "flag --write", or a profile's name
  std::string file;   // empty for flags and built-ins
  int line = 0;       // 1-based; 0 when there is none
  bool operator==(const Origin&) const = default;
};

// "layer file:line", "flag --write", "built-in".
std::string to_string(const Origin& origin);

// The source of a rule. kDefaultSecret (the built-in list, and Belljar's own state) yields to a rule for the
// very same path, and a workspace may lie inside; kGiven, written by a person, does not yield. kNarrowing
// comes from a file in the workspace and may only take away: names are judged when layers are merged, the
// files behind them when the tree is known. kImplied is opened by Belljar itself (the repository of a linked
// work tree) and yields to everything else.
enum class RuleKind { kGiven, kDefaultSecret, kNarrowing, kImplied };

// One rule of the file system. `path` is absolute: a policy file's "~" and relative paths are resolved when layers are merged, in a
// policy written in code they are kInvalidArgument. With `glob` it is a pattern, absolute or beginning with `**/` (`**/.env`), that
// also covers files which appear later: held by backend native, and reported as the clause filesystem.globs where it is not.
struct FsEntry {
  std::string path;
  bool glob = false;
  Access access = Access::kRead;
  Origin origin;
  RuleKind kind = RuleKind::kGiven;
  bool operator==(const FsEntry&) const = default;
};

// A host directory or file shown at another place inside. `target` equal to `source` is the common case.
struct Volume {
  std::string source;
  std::string target;
  bool readonly = true;
  Origin origin;
  bool operator==(const Volume&) const = default;
};

enum class Protect { kDefault, kAll, kNone };  // kNone is a danger setting
enum class Secrets { kDefault, kNone };        // the built-in list of hidden paths; kNone drops it
enum class Tmp { kPrivate, kShared };
// The caches of the host under a writable layer that is discarded at the end, or kept for the next command in the same workspace;
// or no layer (read-only).
enum class Caches { kPrivate, kOff, kWorkspace };
// The directories that other living sandboxes of this user work in. kHidden: of those that are there when this one starts only its
// own workspace is seen, and of a directory that a pool makes workspaces in (SandboxConfig::workspaces) only that, also later.
enum class Siblings { kShown, kHidden };

struct Filesystem {
  std::vector<FsEntry> entries;  // merged order; the most specific wins, of equals none > write > read
  std::vector<Volume> volumes;
  Protect protect = Protect::kDefault;
  // Programs other than git may remove or rename the `.git` of a writable root and what was in it before the run.
  bool allow_git_removal = false;
  Secrets secrets = Secrets::kDefault;
  Tmp tmp = Tmp::kPrivate;
  Bytes tmp_size{1ULL << 30};           // /tmp, /var/tmp, /dev/shm and $XDG_RUNTIME_DIR together
  std::optional<std::string> temp_dir;  // TMPDIR inside; a host directory that is made writable
  bool clean_temp_dir = false;          // temp_dir is empty at the start, and goes with the sandbox: nothing of the host's is seen
  bool exclude_tmpdir_env_var = false;  // $TMPDIR is not made writable
  bool exclude_slash_tmp = false;       // /tmp is not made writable
  Caches caches = Caches::kPrivate;
  std::vector<std::string> cache_dirs;  // absolute or "~/..."; the default list is in policy/defaults.cc
  // Absolute. Directories under a writable layer that is discarded at the end, whatever `caches` says and even inside a writable
  // directory. Paths below one that an entry makes writable persist; an entry for the directory itself replaces it.
  std::vector<std::string> scratch;
  std::vector<std::string> devices;  // host device nodes opened beside the minimal /dev
  // Unset: SandboxConfig::siblings for a Sandbox, kShown for a single run.
  std::optional<Siblings> siblings;
  bool operator==(const Filesystem&) const = default;
};

enum class Inherit { kNone, kCore, kAll };

struct Environment {
  Inherit inherit = Inherit::kCore;
  std::vector<std::string> include;  // patterns (`LC_*`) added to what `inherit` gives
  std::vector<std::string> exclude;  // patterns removed; wins over inherit and include, not over `set` and `pass`
  std::map<std::string, std::string> set;
  std::vector<std::string> pass;  // exact names copied from the caller although excluded (--pass-env)
  bool operator==(const Environment&) const = default;
};

enum class NetMode { kNone, kProxy, kHost };
enum class NetMethods { kFull, kLimited };  // kLimited: GET, HEAD and OPTIONS in the clear, no tunnels

// A TCP port of the host's loopback and one of the sandbox's, joined. Written `HOST:INSIDE`, or one number for both.
struct PortPair {
  std::uint16_t host = 0, inside = 0;
  bool operator==(const PortPair&) const = default;
};
std::string to_string(const PortPair& ports);

struct Network {
  NetMode mode = NetMode::kNone;
  // Unset: allowed in a network namespace of our own (nothing outside can reach it), refused on the host's network.
  std::optional<bool> allow_local_binding;
  std::vector<std::string> allow_unix_sockets;  // host stream sockets by path, there or not; datagram ones are refused by name
  bool allow_all_unix_sockets = false;
  std::vector<PortPair> publish;             // ports inside that the host's loopback reaches; not with mode host
  std::vector<PortPair> host_ports;          // ports of the host's loopback that the inside reaches on its own; not with mode host
  std::vector<std::string> allowed_domains;  // mode proxy; the forms are in src/policy/domains.h
  std::vector<std::string> denied_domains;
  std::vector<std::string> allowed_requests;      // mode proxy: "GET,HEAD example.com/path": only these of a host
  NetMethods methods = NetMethods::kFull;         // mode proxy
  bool proxy_auth = false;                        // mode proxy: the proxy asks for a credential, which the environment holds
  std::optional<std::uint64_t> http_proxy_port;   // mode proxy: a further port inside, which the variables name; else 3128
  std::optional<std::uint64_t> socks_proxy_port;  // mode proxy: a further port inside
  std::string upstream_proxy;                // mode proxy: everything leaves by it: http://[USER:PASSWORD@]HOST:PORT, socks5://...
  std::vector<std::string> upstream_bypass;  // hosts that leave without it, as NO_PROXY names them
  bool transparent = true;                   // mode proxy: programs that know nothing of a proxy are served too
  // mode proxy: "NAME[=env:VARIABLE|=file:PATH] for HOST": a placeholder inside, the value in requests to HOST
  // (src/policy/tls_interception.h)
  std::vector<std::string> credentials;
  std::vector<std::string> tls_passthrough;  // mode proxy: hosts whose TLS is never intercepted; the forms of allowed_domains
  std::optional<std::string> tls_ca_file;    // mode proxy: PEM, further roots for servers whose TLS is intercepted
  bool operator==(const Network&) const = default;
};

enum class OutputAction { kDrain, kKill };

struct Limits {
  std::optional<std::chrono::milliseconds> timeout;       // wall time from exec
  std::optional<std::chrono::milliseconds> max_timeout;   // cap on `timeout`, whoever asks for it
  std::optional<std::chrono::milliseconds> idle_timeout;  // no output, no input, no cpu use for this long
  std::chrono::milliseconds kill_grace{2000};             // TERM, then KILL after this
  std::optional<double> cpus;                             // processors' worth of time, 1.5 for one and a half
  std::optional<double> cpu_request;                      // the share it gets when others want the processors, too
  std::optional<Bytes> memory;                            // of all its processes together
  std::optional<Bytes> memory_request;                    // that reclaim leaves alone
  std::optional<std::uint64_t> pids;
  std::optional<std::uint64_t> open_files;
  std::optional<Bytes> file_size;
  std::optional<Bytes> disk;                        // growth of workspace plus tmp; ends commands, does not bound write_file
  std::optional<Bytes> write_quota;                 // bytes written by the session through the file API
  std::optional<Bytes> egress_bytes;                // both ways through the proxy
  std::optional<std::uint64_t> egress_connections;  // through the proxy at one time
  std::optional<Bytes> egress_rate;                 // a second, both ways through the proxy
  Bytes egress_heads{64ULL << 10};                  // a minute for each rule, in heads of requests, with NetMethods::kLimited
  std::optional<Bytes> output_bytes;                // captured, for stdout and for stderr each
  OutputAction output_action = OutputAction::kDrain;
  bool operator==(const Limits&) const = default;
};

// Command rules. guard/ judges what an agent proposes by them (`belljar rules check --policy`). They guide
// asking: a program that runs starts others without a shell, so `belljar run` refuses a non-empty list by name.
struct Commands {
  std::vector<std::string> allow;
  std::vector<std::string> deny;
  bool operator==(const Commands&) const = default;
};

// Refusals that are expected and kept out of reports. Grants nothing: the act stays refused, and how many were kept out is told.
struct IgnoreViolations {
  // "GLOB", "GLOB on OPERATION", "GLOB by PROGRAM", "GLOB on OPERATION by PROGRAM": acts on a path. Both names may have `*`.
  std::vector<std::string> file;
  std::vector<std::string> network;  // "HOST:PORT": HOST may have `*`, PORT may be `*` or missing
  bool operator==(const IgnoreViolations&) const = default;
};

enum class PullPolicy { kIfNotPresent, kAlways, kNever };

// Of the backend container; with another one they are refused by name.
struct ContainerImage {
  std::optional<std::string> image;  // set, it stands instead of ContainerOptions::image
  std::optional<PullPolicy> pull;    // set, instead of ContainerOptions::pull
  bool operator==(const ContainerImage&) const = default;
};

// How proposed calls are asked about, for `belljar mcp` and `belljar agent`. What is unset is decided by
// their rules and options.
struct Asking {
  std::optional<std::string> mode;  // default | auto-edit | plan | yolo
  std::optional<bool> auto_allow_bash_if_sandboxed;
  std::optional<bool> ask_for_reads;
  bool operator==(const Asking&) const = default;
};

// How a command is isolated from this machine, weakest first. A container shares this kernel as namespaces
// do, and shows nothing of this machine's tree; vm has a kernel of its own, in a virtual machine or (gVisor)
// in user space.
enum class Isolation { kNone, kGuardRails, kLandlock, kNamespace, kContainer, kVm };

struct Policy {
  std::string profile;  // name of the profile it started from
  Mode mode = Mode::kWorkspaceWrite;
  Filesystem filesystem;
  Environment environment;
  Network network;
  Limits limits;
  Commands commands;
  Asking permission;
  IgnoreViolations ignore_violations;
  ContainerImage container;
  std::string backend = "native";          // native | landlock | container | e2b | aliyun | volcengine | auto
  std::vector<std::string> fallback;       // backends to try, in this order, when `backend` cannot start
  Isolation isolation = Isolation::kNone;  // at least this, or the start fails; `accept` does not help it
  bool enable_weaker_nested_sandbox = false;
  bool allow_nested_userns = false;
  bool allow_root_uid = false;
  bool warm = false;                 // of `belljar run` alone: keep sandboxes ready for the next runs like it
  std::vector<std::string> require;  // clauses of the enforcement report that must read `full`
  std::vector<std::string> accept;   // clauses that may read less than asked for; named loudly at start
  bool operator==(const Policy&) const = default;
};

std::string_view to_string(Mode mode) noexcept;
std::string_view to_string(Access access) noexcept;
std::string_view to_string(NetMode mode) noexcept;
std::string_view to_string(Protect protect) noexcept;
std::string_view to_string(Isolation isolation) noexcept;

// The access that `filesystem.entries` give to an absolute, lexically normal path: the most specific entry wins (longest path,
// whole components), ties resolve none > write > read. nullptr when no entry covers it.
const FsEntry* find_rule(const Filesystem& filesystem, std::string_view path) noexcept;

}  // namespace belljar
