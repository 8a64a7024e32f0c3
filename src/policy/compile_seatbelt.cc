// A Seatbelt profile. Of its rules the last that matches an act counts, so less specific rules come first, and what must hold
// whatever was opened before (protected names, patterns) after them.
//
// Sources: sandbox-exec(1), sandbox(7); Apple's own profiles in /System/Library/Sandbox/Profiles of macOS. Seatbelt judges paths
// with links resolved, so what lies behind /tmp, /var and /etc is named as /private/... too.
#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/paths.h"
#include "belljar/error.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "policy/compile.h"
#include "policy/compile_gaps.h"
#include "policy/defaults.h"
#include "policy/paths.h"

namespace belljar::policy {
namespace {

// What no program starts without. System services that tell about users, preferences and power, and nothing of anybody's data.
constexpr std::string_view kBase = R"((version 1)
(deny default)

; processes: they start others, and see and signal their own
(allow process-exec* process-fork)
(allow signal process-info* (target same-sandbox))
(allow sysctl-read)
(allow ipc-posix-sem)
(allow ipc-posix-shm-read* ipc-posix-shm-write*)
(allow user-preference-read)
(allow mach-lookup
  (global-name "com.apple.system.opendirectoryd.libinfo")
  (global-name "com.apple.system.notification_center")
  (global-name "com.apple.cfprefsd.agent")
  (global-name "com.apple.cfprefsd.daemon")
  (global-name "com.apple.PowerManagement.control"))
)";

constexpr std::string_view kDevices = R"(
; devices and terminals
(allow pseudo-tty)
(allow file-read* file-write* file-ioctl
  (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty") (literal "/dev/ptmx")
  (literal "/dev/random") (literal "/dev/urandom")
  (subpath "/dev/fd") (regex #"^/dev/ttys[0-9]+$"))
)";

constexpr std::string_view kNames = R"((allow mach-lookup
  (global-name "com.apple.dnssd.service")
  (global-name "com.apple.trustd.agent")
  (global-name "com.apple.SystemConfiguration.configd")
  (global-name "com.apple.SystemConfiguration.DNSConfiguration"))
(allow network-outbound (literal "/private/var/run/mDNSResponder"))
(allow system-socket)
)";

// Of a home on macOS, beside default_secret_paths().
constexpr std::string_view kSecrets[] = {"Library/Keychains",
                                         "Library/Cookies",
                                         "Library/Safari",
                                         "Library/Messages",
                                         "Library/Mail",
                                         "Library/Application Support/Google/Chrome",
                                         "Library/Application Support/Firefox",
                                         "Library/Application Support/com.apple.TCC"};

std::string string_of(std::string_view path) {
  std::string text = "\"";
  for (const char c : path) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + '"';
}

// Both names of a path that lies behind one of macOS's links.
std::vector<std::string> spellings(const std::string& path) {
  for (const std::string_view link : {"/tmp", "/var", "/etc"}) {
    if (is_within(path, link)) return {path, "/private" + path};
  }
  return {path};
}

void append_escaped(std::string& regex, char c) {
  if (std::string_view(".[]{}()*+?^$|\\").find(c) != std::string_view::npos) regex += '\\';
  regex += c;
}

std::string regex_of_text(std::string_view text) {
  std::string regex;
  for (const char c : text) append_escaped(regex, c);
  return regex;
}

// A name in any case, as the file system takes it; a `*` stands for any text.
std::string regex_of_name(std::string_view name) {
  std::string regex;
  for (const char c : name) {
    const char lower = static_cast<char>(c | 0x20);
    if (c == '*') regex += "[^/]*";
    else if (lower >= 'a' && lower <= 'z') regex += format("[{}{}]", lower, static_cast<char>(lower - 0x20));
    else append_escaped(regex, c);
  }
  return regex;
}

std::string regex_of_glob(std::string_view glob) {
  std::string regex = "^";
  if (glob.starts_with("**/")) regex += "/";
  for (std::size_t i = 0; i < glob.size(); ++i) {
    const bool at_component = i == 0 || glob[i - 1] == '/';
    if (at_component && glob.substr(i).starts_with("**/")) regex += "(.*/)?", i += 2;
    else if (at_component && glob.substr(i) == "**") regex += ".*", i += 1;
    else if (glob[i] == '*') regex += "[^/]*";
    else if (glob[i] == '?') regex += "[^/]";
    else if (glob[i] == '\\' && i + 1 < glob.size()) append_escaped(regex, glob[++i]);
    else if (const std::size_t end = glob.find(']', i + 2); glob[i] == '[' && end != std::string_view::npos) {
      regex += '[';
      std::string_view in = glob.substr(i + 1, end - i - 1);
      if (in.starts_with('!')) regex += "^/", in.remove_prefix(1);
      regex += format("{}]", in);
      i = end;
    } else append_escaped(regex, glob[i]);
  }
  return regex + "(/|$)";
}

class Profile {
 public:
  Profile(const Effective& effective, const std::string& home) : complete_(with_volumes(effective)), policy_(effective.policy) {
    if (policy_.filesystem.secrets == Secrets::kDefault && !home.empty()) {
      for (const std::string_view secret : kSecrets)
        complete_.entries.insert(complete_.entries.begin(), {.path = format("{}/{}", home, secret), .access = Access::kNone});
    }
    entries_ = in_order(complete_);
  }

  Result<Compiled> make() {
    BELLJAR_CHECK(check_names());
    out_.gaps = common_gaps(policy_, "Seatbelt", {"filesystem.devices"});
    out_.gaps.push_back({"environment", "a profile says nothing of variables: the command has all those of its caller"});
    if (policy_.filesystem.allow_git_removal && policy_.filesystem.protect != Protect::kNone)
      out_.gaps.push_back({"filesystem.allow_git_removal", "programs are not told apart: none moves or removes a .git"});
    out_.text = format("; made by `belljar policy compile --for seatbelt` of profile {}\n", policy_.profile);
    out_.text += format("; sandbox-exec -D {}=/private/tmp/SOME-EMPTY-DIRECTORY -f THIS-FILE COMMAND\n", kSeatbeltTmp);
    if (policy_.mode == Mode::kDangerFullAccess) {
      out_.text += "(version 1)\n(allow default)\n";
      return finish(std::move(out_), policy_, "Seatbelt");
    }
    out_.text += kBase;
    files();
    temporary();
    out_.text += kDevices;
    for (const std::string& device : policy_.filesystem.devices)
      out_.text += format("(allow file-read* file-write* file-ioctl (literal {}))\n", string_of(device));
    keep_places();
    patterns();
    network();
    return finish(std::move(out_), policy_, "Seatbelt");
  }

 private:
  // A name that would end a string or a pattern early.
  Result<void> check_names() const {
    if (policy_.mode == Mode::kExternalSandbox)
      return Error(Code::kInvalidArgument, "cannot compile mode external-sandbox").reason("it leaves the sandbox to somebody else");
    for (const FsEntry& entry : complete_.entries) {
      if (std::ranges::any_of(entry.path, [](unsigned char c) { return c < ' ' || c == 0x7f; }) ||
          (entry.path.find('"') != std::string::npos && (entry.glob || entry.access == Access::kWrite)))
        return Error(Code::kInvalidArgument, format("cannot compile the rule for {}", quoted(entry.path)))
            .reason("a Seatbelt profile has no spelling for control characters, nor for a quote in a pattern");
      if (entry.glob && entry.access == Access::kWrite)
        return Error(Code::kInvalidArgument, format("cannot compile the rule for {}", quoted(entry.path)))
            .reason("a pattern that opens would come after rules that are more specific")
            .next("name the directories that are to be written to");
    }
    return {};
  }

  void rule(std::string_view verb, std::string_view acts, const std::string& path) {
    out_.text += format("({} {}", verb, acts);
    for (const std::string& name : spellings(path)) out_.text += format(" (subpath {})", string_of(name));
    out_.text += ")\n";
  }

  void files() {
    out_.text += "\n; files: of two rules the later counts\n";
    for (const FsEntry& entry : entries_) {
      switch (entry.access) {
        case Access::kRead:
          rule("allow", "file-read*", entry.path);
          if (entry.path != "/") rule("deny", "file-write*", entry.path);
          break;
        case Access::kWrite:
          rule("allow", "file-read* file-write*", entry.path);
          protect(entry.path);
          break;
        case Access::kNone:
          rule("deny", "file-read* file-write*", entry.path);
          break;
      }
    }
    std::set<std::string> above;
    for (const FsEntry& entry : entries_) {
      if (entry.access == Access::kNone) continue;
      for (std::string path = entry.path; path != "/";) {
        path = parent_of(path);
        const FsEntry* const found = find_rule(complete_, path);
        if (found == nullptr || found->access == Access::kNone) above.insert(path);
      }
    }
    if (!above.empty()) out_.text += "; the way to what is open\n";
    for (const std::string& path : above) {
      out_.text += format("(allow file-read-metadata (literal {}))\n", string_of(path));
    }
  }

  // Names that programs outside read as code. A git directory is not moved away either: its parts would have other names then.
  void protect(const std::string& root) {
    if (policy_.filesystem.protect == Protect::kNone) return;
    std::string names;
    for (const ProtectedName& each : protected_names()) {
      if (each.name == ".git") continue;
      names += format("{}{}", names.empty() ? "" : "|", regex_of_name(each.name));
    }
    std::string control;
    for (const std::string_view name : git_control_names()) {
      if (name != "modules" && name != "worktrees") control += format("{}{}", control.empty() ? "" : "|", regex_of_name(name));
    }
    const std::string git = regex_of_name(".git");
    const bool all = policy_.filesystem.protect == Protect::kAll;
    for (const std::string& name : spellings(root)) {
      const std::string in = format("^{}/(.*/)?", name == "/" ? "" : regex_of_text(name));
      out_.text += format("(deny file-write* (regex #\"{}({})(/|$)\"))\n", in, names);
      if (all) {
        out_.text += format("(deny file-write* (regex #\"{}{}(/|$)\"))\n", in, git);
        continue;
      }
      out_.text += format("(deny file-write* (regex #\"{}{}/(modules/(.*/)?|worktrees/[^/]*/)?({})(/|$)\"))\n", in, git, control);
      out_.text += format("(deny file-write-unlink (regex #\"{}{}$\"))\n", in, git);
    }
    if (std::ranges::find(out_.gaps, "filesystem.protect", &CompileGap::clause) == out_.gaps.end())
      out_.gaps.push_back(
          {"filesystem.protect",
           "names alone are judged: git cannot write its configuration (`git init`, `git config`), names in node_modules "
           "and the like are kept, too, and what becomes a bare repository is not seen"});
  }

  void temporary() {
    out_.text += format("\n; TMPDIR\n(allow file-read* file-write* (subpath (param \"{}\")))\n", kSeatbeltTmp);
    if (policy_.filesystem.tmp == Tmp::kPrivate)
      out_.gaps.push_back({"filesystem.tmp", "TMPDIR is the run's own directory; /tmp is the host's, which its rules decide"});
  }

  // A directory that holds something closed, moved away and made anew, would open it.
  void keep_places() {
    std::set<std::string> kept;
    for (const FsEntry& entry : entries_) {
      if (entry.access == Access::kWrite) continue;
      for (std::string path = entry.path; path != "/";) {
        path = parent_of(path);
        const FsEntry* const found = find_rule(complete_, path);
        if (found != nullptr && found->access == Access::kWrite) kept.insert(path);
      }
    }
    if (!kept.empty()) out_.text += "\n; directories that hold something closed keep their place\n";
    for (const std::string& path : kept) {
      for (const std::string& name : spellings(path))
        out_.text += format("(deny file-write-unlink (literal {}))\n", string_of(name));
    }
  }

  void patterns() {
    bool first = true;
    for (const FsEntry& entry : complete_.entries) {
      if (!entry.glob) continue;
      if (std::exchange(first, false)) out_.text += "\n; patterns\n";
      const std::string_view acts = entry.access == Access::kNone ? "file-read* file-write*" : "file-write*";
      for (const std::string& glob : spellings(entry.path))
        out_.text += format("(deny {} (regex #\"{}\"))\n", acts, regex_of_glob(glob));
    }
  }

  void network() {
    const Network& network = policy_.network;
    out_.text += format("\n; network: {}\n", to_string(network.mode));
    if (network.mode == NetMode::kHost) {
      out_.text += "(allow network*)\n";
      out_.text += kNames;
      return;
    }
    if (network.mode == NetMode::kProxy)
      out_.text += format("(allow network-outbound (remote ip \"localhost:{}\"))\n", network.http_proxy_port.value_or(kProxyPort));
    if (network.socks_proxy_port)
      out_.text += format("(allow network-outbound (remote ip \"localhost:{}\"))\n", *network.socks_proxy_port);
    for (const PortPair& port : network.host_ports) {
      if (port.host != port.inside)
        out_.gaps.push_back({"network.host_ports", format("{}: there is one loopback", to_string(port))});
      else out_.text += format("(allow network-outbound (remote ip \"localhost:{}\"))\n", port.host);
    }
    // There is one loopback for everybody, so listening is opened only where somebody says so.
    if (network.allow_local_binding == true) out_.text += "(allow network-bind network-inbound (local ip \"localhost:*\"))\n";
    for (const PortPair& port : network.publish) {
      if (port.host != port.inside) out_.gaps.push_back({"network.publish", format("{}: there is one loopback", to_string(port))});
      else out_.text += format("(allow network-bind network-inbound (local ip \"localhost:{}\"))\n", port.inside);
    }
    if (!network.allow_local_binding)
      out_.gaps.push_back({"network.local", "there is one loopback: nobody listens, unless network.allow_local_binding says so"});
    for (const std::string& socket : network.allow_unix_sockets) {
      for (const std::string& name : spellings(socket))
        out_.text += format("(allow network-outbound (literal {}))\n", string_of(name));
    }
    if (network.allow_all_unix_sockets) {
      out_.text += "(allow network-outbound (remote unix-socket))\n";
      return;
    }
    // Sockets of its own, where it may write: what else listens there can be reached as well.
    for (const FsEntry& entry : entries_) {
      if (entry.access != Access::kWrite) continue;
      for (const std::string& name : spellings(entry.path))
        out_.text += format("(allow network-bind network-inbound network-outbound (subpath {}))\n", string_of(name));
      if (std::ranges::find(out_.gaps, "network.unix_sockets", &CompileGap::clause) == out_.gaps.end())
        out_.gaps.push_back({"network.unix_sockets", "a server of the host with a socket in a writable directory can be reached"});
    }
  }

  Filesystem complete_;
  const Policy& policy_;
  std::vector<FsEntry> entries_;
  Compiled out_;
};

}  // namespace

Result<Compiled> compile_seatbelt(const Effective& effective, const MergeContext& context) {
  return Profile(effective, context.home).make();
}

}  // namespace belljar::policy
