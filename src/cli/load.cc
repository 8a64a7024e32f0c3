// Which policy files are read, who may write them, and what each of them may say.
//
// Layers are read from the lowest to the highest: a variable that names a backend, the system's file, the
// user's, the project's, the file of --policy, flags. Merging them is policy/merge; here is what needs the
// machine: which files there are and where they really lie.
//
// A file inside the workspace may only narrow, whoever named it, because a command can have written it. What
// counts is where the file lies after links were followed (/proc/self/fd of the open file, so that nothing
// can change between the look and the reading). The project's own file is stricter: it is opened beneath the
// workspace with no symbolic link on the way, openat2(2), since a command could point a link there elsewhere.
//
// Absent files are fine, and so is a missing directory. A name that leads to nothing because a link is broken
// is an error: somebody meant a file to be there, and without it the policy might be looser than they think
// (dangles).
//
// The profile is at the bottom and named by the highest trusted layer, so layers are read first and their
// base last (base_layer). A file that --policy names is protected from the command: the next start will obey
// what it says then (OwnFile).
#include "cli/load.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>  // NOLINT(modernize-deprecated-headers): explicit_bzero
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/environment.h"
#include "base/format.h"
#include "base/read_file.h"
#include "base/real_path.h"
#include "base/unique_fd.h"
#include "belljar/error.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "belljar/state_dir.h"
#include "cli/own_files.h"
#include "cli/policy_flags.h"
#include "kernel/account.h"
#include "kernel/worktree.h"
#include "policy/agents.h"
#include "policy/backends.h"
#include "policy/layer.h"
#include "policy/merge.h"
#include "policy/names.h"
#include "policy/parse.h"
#include "policy/paths.h"
#include "policy/permit.h"
#include "policy/profiles.h"
#include "policy/schema.h"
#include "policy/tls_interception.h"
#include "runtime/run.h"

namespace belljar::cli {
namespace {

using policy::Layer;

constexpr std::size_t kMaxFile = 8U << 20;  // a thousand entries of 4095 bytes, twice

constexpr std::string_view kPolicy = "policy";

Error unreadable(const std::string& path, int errnum, const char* call, std::string_view what = kPolicy) {
  const char* missing = what == kPolicy ? "check the name; `belljar policy show` prints a policy to start from" : "check the name";
  return Error(errnum == ENOENT ? Code::kNotFound : Code::kPermissionDenied,
               format("cannot read {} {}", what, belljar::quoted(path)))
      .sys(errnum, call)
      .next(errnum == ENOENT ? missing : "let the user who calls read it");
}

Result<std::string> read_all(const UniqueFd& file, const std::string& path, std::string_view what = kPolicy) {
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) return unreadable(path, errno, "fstat", what);
  const auto refused = [&](std::string why) {
    return Error(Code::kInvalidArgument, format("cannot read {} {}", what, belljar::quoted(path)))
        .reason(std::move(why))
        .next(what == kPolicy ? "name a TOML or JSON file: --policy ./policy.toml" : "name a file");
  };
  if (!S_ISREG(status.st_mode)) return refused(S_ISDIR(status.st_mode) ? "it is a directory" : "it is not a regular file");
  if (static_cast<std::size_t>(status.st_size) > kMaxFile) return refused("it is larger than 8 MiB");
  auto text = read_at_most(file.get(), kMaxFile + 1);
  if (!text) return unreadable(path, errno, "read", what);
  if (text->size() > kMaxFile) return refused("it is larger than 8 MiB");  // it grew
  return *std::move(text);
}

struct OpenFile {
  UniqueFd file;
  std::string real;  // where it really lies, symbolic links followed
};

Result<OpenFile> open_text(const std::string& path, std::string_view what = kPolicy) {
  // O_NONBLOCK: a FIFO without a writer must not hold us; read_all refuses it by its type.
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!file.valid()) return unreadable(path, errno, "open", what);
  char real[PATH_MAX];
  const ssize_t length = ::readlink(format("/proc/self/fd/{}", file.get()).c_str(), real, sizeof real);
  if (length > 0 && length < PATH_MAX) return OpenFile{std::move(file), std::string(real, static_cast<std::size_t>(length))};
  if (::realpath(path.c_str(), real) == nullptr) return unreadable(path, errno, "realpath", what);
  return OpenFile{std::move(file), real};
}

// A trusted place; absent is fine unless somebody named the file.
Result<std::optional<Layer>> file_layer(const std::string& path, std::string_view name, const std::string& workspace, bool named) {
  auto opened = open_text(path);
  const bool absent = !opened && (opened.error().errnum() == ENOENT || opened.error().errnum() == ENOTDIR);
  if (absent && !named && !dangles(path)) return std::optional<Layer>();
  if (!opened) return std::move(opened).error();
  const std::string text = BELLJAR_TRY(read_all(opened->file, path));
  Layer layer = BELLJAR_TRY(policy::parse_policy(text, path, name));
  layer.narrow_only = policy::is_within(opened->real, workspace);
  return std::optional<Layer>(std::move(layer));
}

std::string project_policy(const std::string& workspace) { return (workspace == "/" ? "" : workspace) + "/.belljar/policy.toml"; }

// The file in the workspace, written by anyone: beneath the workspace, no symbolic link on the way.
Result<std::optional<Layer>> project_layer(const std::string& workspace) {
  const std::string shown = project_policy(workspace);
  const UniqueFd root(::open(workspace.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid()) return unreadable(workspace, errno, "open");
  open_how how{};
  how.flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  UniqueFd file(static_cast<int>(::syscall(SYS_openat2, root.get(), ".belljar/policy.toml", &how, sizeof how)));
  if (!file.valid() && errno == ENOSYS) {
    // Inside another Belljar, whose filter refuses openat2: the same in two steps.
    const UniqueFd folder(::openat(root.get(), ".belljar", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (folder.valid())
      file = UniqueFd(::openat(folder.get(), "policy.toml", O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW));
    else if (errno == ENOTDIR) errno = ELOOP;  // O_DIRECTORY with O_NOFOLLOW says so of a link
  }
  if (!file.valid() && errno == ENOENT) return std::optional<Layer>();
  if (!file.valid() && errno == ELOOP) {
    return Error(Code::kPermissionDenied, format("cannot read policy {}", belljar::quoted(shown)))
        .sys(ELOOP, "openat2, RESOLVE_NO_SYMLINKS")
        .reason("a symbolic link in the workspace can be pointed elsewhere by the command")
        .next("put the file itself there");
  }
  if (!file.valid()) return unreadable(shown, errno, "openat2");
  const std::string text = BELLJAR_TRY(read_all(file, shown));
  Layer layer = BELLJAR_TRY(policy::parse_toml(text, shown, "project"));
  layer.narrow_only = true;
  return std::optional<Layer>(std::move(layer));
}

// The lowest of all: what a file or an option says of the backend outweighs a variable.
Result<std::optional<Layer>> environment_layer() {
  policy::FromEnvironment said = BELLJAR_TRY(policy::backend_of_environment([](const char* name) { return own_variable(name); }));
  if (said.backend.empty()) return std::optional<Layer>();
  Layer layer{.name = said.variable, .narrow_only = false, .settings = {}};
  layer.settings.push_back({policy::find_key("backend"), std::move(said.backend), {said.variable, "", 0}, {}});
  return std::optional<Layer>(std::move(layer));
}

// BELLJAR_WARM=1 or 0, as `warm` of the user's own file; the option outweighs it.
Result<std::optional<Layer>> warm_layer() {
  constexpr const char* kVariable = "BELLJAR_WARM";
  const std::string said = own_variable(kVariable);
  if (said.empty()) return std::optional<Layer>();
  if (said != "0" && said != "1")
    return Error(Code::kInvalidArgument, format("{} is {}", kVariable, belljar::quoted(said)))
        .next("set it to 1 (keep sandboxes ready) or 0, or unset it");
  Layer layer{.name = kVariable, .narrow_only = false, .settings = {}};
  layer.settings.push_back({policy::find_key("warm"), said == "1", {kVariable, "", 0}, {}});
  return std::optional<Layer>(std::move(layer));
}

// local and mock are for programs that embed the library: here a command would run with nothing around it.
Result<void> check_environment(const policy::Effective& effective) {
  const std::string& backend = effective.policy.backend;
  const policy::BackendKind* const kind = policy::find_backend_kind(backend);
  if (kind == nullptr || kind->by_fallback) return {};
  const std::string variable = policy::origin_of(effective, "backend");
  return Error(Code::kFailedPrecondition, format("{} names the backend {}", variable, backend))
      .reason("it holds a command back as good as nothing, and only a program that embeds the library may use it")
      .next(format("name another one (--backend native), or unset {}", variable));
}

bool is_file_name(const std::string& choice) {
  return choice.find('/') != std::string::npos || choice.ends_with(".toml") || choice.ends_with(".json");
}

// A relative path means another place in every directory: as if the variable were not set, XDG Base Directory Specification.
std::string place_variable(const char* name) {
  std::string path = own_variable(name);
  return path.starts_with('/') ? path : std::string();
}

policy::MergeContext make_context(std::string workspace, std::string home) {
  policy::MergeContext context;
  context.workspace = std::move(workspace);
  context.repository = kernel::repository_of_worktree(context.workspace);
  // Secrets are hidden where they really lie: what a profile says of ~ has to mean the same.
  context.home = real_path(home);
  if (context.home.empty()) context.home = std::move(home);
  context.tmpdir = place_variable("TMPDIR");
  context.runtime_dir = place_variable("XDG_RUNTIME_DIR");
  char cwd[PATH_MAX];
  if (::getcwd(cwd, sizeof cwd) != nullptr) context.cwd = cwd;
  std::string config = own_variable("XDG_CONFIG_HOME");
  // "must be absolute; a relative path is to be ignored", XDG Base Directory Specification.
  if (!config.starts_with('/')) config = context.home.empty() ? "" : context.home + "/.config";
  if (!config.empty()) context.config_dir = policy::normal(config + "/belljar");
  context.state_dir = default_state_dir();
  context.account_home = kernel::home_of_caller();
  context.log_ins = policy::moved_log_ins(context.cwd, own_variable);
  return context;
}

// Which profile is at the bottom: the word of the highest trusted layer. Its name becomes the bottom layer's own setting.
Result<Layer> base_layer(std::vector<Layer>& layers, const PolicyFlags& flags) {
  std::string name = flags.recognised.empty() ? "workspace-write" : flags.recognised;
  Origin origin{flags.recognised.empty() ? "built-in" : "the program's", "", 0};
  for (Layer& layer : layers) {
    if (layer.narrow_only) continue;
    for (const policy::Setting& setting : layer.settings) {
      if (setting.key->name == "profile") name = std::get<std::string>(setting.value), origin = setting.origin;
    }
    std::erase_if(layer.settings, [](const policy::Setting& setting) { return setting.key->name == "profile"; });
  }
  if (!flags.policy.empty() && !is_file_name(flags.policy)) {
    const auto mode = policy::value_of<Mode>(flags.policy);
    origin = {"flag --policy", "", 0};
    name = !mode ? flags.policy : *mode == Mode::kReadOnly ? "read-only" : "workspace-write";
  }
  auto base = policy::profile_layer(name);
  if (!base && origin.layer != "flag --policy") {
    return Error(base.error().code(), format("{}: {}", to_string(origin), base.error().what()))
        .reason(base.error().reason())
        .next(base.error().next());
  }
  if (!base) return base;
  policy::move_state(*base, [](const char* variable) { return own_variable(variable); });
  base->settings.push_back({policy::find_key("profile"), name, origin, {}});
  return base;
}

// A layer lies over one place, and the agent would look for another one in each directory.
Result<void> check_state_place(const Layer& profile) {
  const char* const name = policy::relative_variable(profile.name, own_variable);
  if (name == nullptr) return {};
  return Error(Code::kInvalidArgument,
               format("cannot keep the agent's state apart: {} is {}", name, belljar::quoted(own_variable(name))))
      .reason(
          "a relative path is another directory wherever the agent starts, and in a workspace what commands leave there is obeyed")
      .next(format("give it in full: {}=\"$PWD\"/{}", name, "DIRECTORY"));
}

}  // namespace

std::vector<std::string> caller_environment(const Network& network) {
  std::vector<std::string> entries = own_environment();
  if (!network.credentials.empty())
    std::erase_if(entries, [&](const std::string& entry) { return policy::is_credential_source(network, entry); });
  return entries;
}

std::string take_variable(const char* name) {
  char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): one thread, before anything starts
  if (value == nullptr) return {};
  std::string text = value;
  ::explicit_bzero(value, text.size());
  ::unsetenv(name);  // NOLINT(concurrency-mt-unsafe)
  return text;
}

Result<std::string> read_text_file(const std::string& path, std::string_view what) {
  return read_all(BELLJAR_TRY(open_text(path, what)).file, path, what);
}

Result<std::string> read_policy_file(const std::string& path) { return read_text_file(path, kPolicy); }

bool dangles(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) == 0) return false;
  // The longest beginning that is there: a link that leads nowhere, or what the rest is simply not in.
  for (std::string part = path; !part.empty(); part.resize(part.find_last_of('/') == std::string::npos ? 0 : part.rfind('/'))) {
    if (::lstat(part.c_str(), &status) == 0) return S_ISLNK(status.st_mode) && ::stat(part.c_str(), &status) != 0;
  }
  return false;
}

Result<std::string> find_workspace(const std::vector<std::string>& given, const std::string& home) {
  const std::string named = given.empty() ? "." : given.back();
  const auto refused = [&](Code code) { return Error(code, format("cannot use workspace {}", belljar::quoted(named))); };
  if (named.empty()) return refused(Code::kInvalidArgument).reason("the name is empty");
  std::string path = real_path(named);
  if (path.empty()) {
    return refused(errno == ENOENT ? Code::kNotFound : Code::kPermissionDenied)
        .sys(errno, "realpath")
        .next("name an existing directory: --workspace DIR");
  }
  const UniqueFd directory(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid())
    return refused(Code::kInvalidArgument).sys(errno, "open").next("name an existing directory: --workspace DIR");
  if (::faccessat(directory.get(), ".", R_OK | X_OK, 0) != 0)
    return refused(Code::kPermissionDenied)
        .sys(errno, "faccessat")
        .reason("you may not list and enter it")
        .next("run `chmod u+rx` on it, or name another directory: --workspace DIR");
  const auto is = [&](const std::string& one) { return !one.empty() && real_path(one) == path; };
  const bool is_home = is(home) || is(kernel::home_of_caller());
  const bool twice = given.size() >= 2 && given[given.size() - 2] == named;
  if ((path == "/" || is_home) && !twice) {
    return refused(Code::kInvalidArgument)
        .reason(path == "/" ? "everything on this machine would be the workspace"
                            : "everything in your home directory would be writable")
        .next(format("go to a project directory, or name it twice: --workspace {0} --workspace {0}", escaped(path)));
  }
  return path;
}

std::string name_of_workspace(const std::vector<std::string>& given, const std::string& pwd, const std::string& real) {
  char here[PATH_MAX];
  std::string name = given.empty() ? "." : given.back();
  if (!name.starts_with('/')) {
    if (::getcwd(here, sizeof here) == nullptr) return real;
    const bool is_here = pwd.starts_with('/') && real_path(pwd) == here;
    name = (is_here ? pwd : std::string(here)) + "/" + name;
  }
  name = policy::normal(name);
  return real_path(name) == real ? name : real;
}

namespace {

constexpr const char* kNowhere = "/nonexistent/workspace";

constexpr const char* kSystemPolicy = "/etc/belljar/policy.toml";
std::string user_policy(const policy::MergeContext& context) { return context.config_dir + "/policy.toml"; }

Result<LoadedPolicy> load(const PolicyFlags& flags, policy::MergeContext context) {
  std::vector<Layer> layers;
  const auto add_layer = [&layers](std::optional<Layer> layer) {
    if (layer) layers.push_back(*std::move(layer));
  };
  add_layer(BELLJAR_TRY(environment_layer()));
  add_layer(BELLJAR_TRY(file_layer(kSystemPolicy, "system", context.workspace, false)));
  if (!context.config_dir.empty()) add_layer(BELLJAR_TRY(file_layer(user_policy(context), "user", context.workspace, false)));
  if (context.workspace != kNowhere) add_layer(BELLJAR_TRY(project_layer(context.workspace)));
  if (is_file_name(flags.policy)) add_layer(BELLJAR_TRY(file_layer(flags.policy, "policy", context.workspace, true)));
  add_layer(BELLJAR_TRY(warm_layer()));
  Layer flag_layer = BELLJAR_TRY(flags_layer(flags));
  if (policy::value_of<Mode>(flags.policy)) {
    flag_layer.settings.push_back({policy::find_key("mode"), flags.policy, {"flag --policy", "", 0}, {}});
  }
  layers.push_back(std::move(flag_layer));
  layers.insert(layers.begin(), BELLJAR_TRY(base_layer(layers, flags)));
  BELLJAR_CHECK(check_state_place(layers.front()));
  // The next start obeys what it says then. A file in the workspace may only narrow, whoever wrote it: without it the next start is
  // wider.
  std::vector<OwnFile> obeyed;
  for (const Layer& layer : layers) {
    if (layer.name == kPolicy)
      obeyed.push_back(
          {.doing = "obey the policy", .option = "--policy", .path = flags.policy, .protection = Protection::kReadOnly});
  }
  LoadedPolicy loaded{BELLJAR_TRY(policy::merge(layers, context)), std::move(context), {}, {}};
  BELLJAR_CHECK(check_environment(loaded.effective));
  for (const std::string& path : policy::persistent_state(layers.front())) {
    if (auto full = policy::absolute(path, loaded.context.home, loaded.context.workspace))
      (path.ends_with('/') ? loaded.state : loaded.state_files).push_back(*std::move(full));
  }
  // A layer over what is not there is possible below the home alone.
  for (const std::string& path : loaded.effective.policy.filesystem.scratch) {
    if (loaded.effective.policy.profile.starts_with("agent-") && !policy::is_within(path, loaded.context.home))
      loaded.state.push_back(path);
  }
  BELLJAR_CHECK(keep_own_files(obeyed, loaded));
  return loaded;
}

}  // namespace

Result<LoadedPolicy> load_policy(const PolicyFlags& flags) {
  const std::string home = place_variable("HOME");
  return load(flags, make_context(BELLJAR_TRY(find_workspace(flags.workspace, home)), home));
}

std::vector<std::string> policy_files(const PolicyFlags& flags, const policy::MergeContext& context) {
  std::vector<std::string> files{kSystemPolicy};
  if (!context.config_dir.empty()) files.push_back(user_policy(context));
  files.push_back(project_policy(context.workspace));
  if (is_file_name(flags.policy)) files.push_back(flags.policy);
  return files;
}

Result<LoadedPolicy> load_without_workspace(const PolicyFlags& flags) {
  return load(flags, make_context(kNowhere, place_variable("HOME")));
}

Result<std::string> find_start(const std::string& given, const policy::MergeContext& context) {
  if (given.empty()) return runtime::find_cwd(context.workspace, context.cwd) ? context.cwd : given;
  if (given.starts_with('/')) return given;
  std::string seen = format("{}/{}", context.cwd, given);
  const std::string below = format("{}/{}", context.workspace, given);
  if (::access(seen.c_str(), F_OK) != 0 && errno == ENOENT && ::access(below.c_str(), F_OK) == 0)
    return Error(Code::kNotFound, format("cannot use {} as working directory", belljar::quoted(given)))
        .reason(format("it is seen from the directory that you are in, {}", belljar::quoted(context.cwd)))
        .next(format("--cwd {} names the one in the workspace", policy::shell_word(below)));
  return seen;
}

backend::Workplace workplace_of(const policy::MergeContext& context, std::string cwd) {
  return {.workspace = context.workspace,
          .cwd = std::move(cwd),
          .home = context.home,
          .tmpdir = context.tmpdir,
          .runtime_dir = context.runtime_dir};
}

policy::MergeContext context_here() {
  const std::string home = place_variable("HOME");
  return make_context(find_workspace({}, home).value_or("/workspace"), home);
}

Result<policy::Effective> merge_alone(const Layer& layer, const policy::MergeContext& context) {
  std::vector<Layer> layers{layer};
  layers.insert(layers.begin(), BELLJAR_TRY(base_layer(layers, {})));
  return policy::merge(layers, context);
}

bool is_project_file(const std::string& path) { return real_path(path).ends_with("/.belljar/policy.toml"); }

}  // namespace belljar::cli
