// bubblewrap's options as a table: each row has the name, how many words it takes, and what it does to the
// recipe.
//
// Options are order-dependent in two ways. Mounts are made in the order of the words. And --perms, --size and
// --overlay-src set something for the next option that uses it; what is left over at the end is refused
// (check_together, finish).
//
// Messages are bubblewrap's own where callers match them. An option that cannot be served is refused by name.
#include "bwrap/parse.h"

#include <linux/filter.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "base/format.h"
#include "bwrap/capabilities.h"
#include "launch/recipe.h"

namespace belljar::bwrap {
namespace {

using launch::Recipe;
using launch::RecipeOp;
using Kind = RecipeOp::Kind;

constexpr std::uint64_t kAllCapabilities = ~std::uint64_t{0};
constexpr std::size_t kMostWords = 100'000;
constexpr std::uint64_t kMostTmpfs = SIZE_MAX >> 1;

template <class Number>
std::optional<Number> number_of(std::string_view text, int base) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

struct BindOptions {
  bool read_only = false, devices = false, if_exists = false;
};

class Parser {
 public:
  using Words = std::span<const std::string>;  // what an option takes

  Parser(const Surroundings& surroundings, Parsed& out) : surroundings_(surroundings), out_(out), recipe_(out.recipe) {
    recipe_.env = surroundings.environment;
    if (surroundings.uid == 0) recipe_.capabilities = surroundings.capabilities;
  }

  void run(Words words);

  // --- what options do; false: refused

  bool show(Parsed::Act act) {
    out_.act = act;
    return false;
  }
  bool refuse(std::string text) {
    out_.refusal = std::move(text);
    return show(Parsed::Act::kRefused);
  }
  bool set(bool& wish) {
    wish = true;
    return true;
  }
  bool level_prefix() { return set(out_.level_prefix); }
  bool unshare(std::uint64_t namespaces) {
    recipe_.namespaces |= namespaces;
    return true;
  }
  bool unshare_all() {
    user_try_ = cgroup_try_ = true;
    return unshare(CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWNET);
  }
  bool share_net() {
    recipe_.namespaces &= ~std::uint64_t{CLONE_NEWNET};
    return true;
  }
  bool args(Words words);
  bool argv0(Words words) {
    if (argv0_) return refuse("--argv0 used multiple times");
    argv0_ = words[0];
    return true;
  }
  bool descriptor(std::string_view option, int& fd, Words words) {
    if (fd >= 0) only_last(option);
    return read_number(fd, words[0]);
  }
  bool id(std::string_view what, std::optional<unsigned>& id, Words words) {
    if (id) only_last(format("--{}", what));
    const auto value = number_of<unsigned>(words[0], 10);
    if (!value || *value > INT_MAX) return refuse(format("Invalid {}: {}", what, escaped(words[0])));
    id = value;
    return true;
  }
  bool hostname(Words words) {
    if (hostname_) only_last("--hostname");
    hostname_ = true;
    add({.kind = Kind::kHostname, .source = words[0]});
    return true;
  }
  bool chdir(Words words) {
    if (!recipe_.chdir.empty()) only_last("--chdir");
    if (words[0].empty()) return refuse("Can't chdir to : No such file or directory");
    recipe_.chdir = words[0];
    return true;
  }
  bool clear_environment() {
    for (std::string& entry : recipe_.env) wipe(entry);
    recipe_.env.clear();
    return true;
  }
  bool unset(Words words) {
    if (!is_variable(words[0])) return refuse(format("unsetenv failed: {}: Invalid argument", escaped(words[0])));
    std::erase_if(recipe_.env, [&](std::string& entry) {
      const bool found = is_entry_of(entry, words[0]);
      if (found) wipe(entry);
      return found;
    });
    return true;
  }
  bool set_variable(Words words) {
    if (!is_variable(words[0])) return refuse(format("setenv failed: {}: Invalid argument", escaped(words[0])));
    const auto found = std::ranges::find_if(recipe_.env, [&](const std::string& entry) { return is_entry_of(entry, words[0]); });
    std::string entry = words[0] + "=" + words[1];
    if (found != recipe_.env.end()) *found = std::move(entry);
    else recipe_.env.push_back(std::move(entry));
    return true;
  }
  bool lock_file(Words words) {
    recipe_.lock_files.push_back(words[0]);
    return true;
  }
  bool bind(Words words, BindOptions options) {
    add({.kind = Kind::kBind,
         .read_only = options.read_only,
         .devices = options.devices,
         .if_exists = options.if_exists,
         .source = words[0],
         .dest = words[1]});
    return true;
  }
  bool bind_fd(Words words, BindOptions options) {
    RecipeOp op{.kind = Kind::kBind, .read_only = options.read_only, .dest = words[1]};
    return read_number(op.fd, words[0]) && add_with_fd(std::move(op));
  }
  bool place(Kind kind, Words words) {
    add({.kind = kind, .dest = words[0]});
    return true;
  }
  bool tmpfs(Words words) {
    const mode_t mode = perms_.value_or(0755);
    RecipeOp op{.kind = Kind::kTmpfs, .dest = words[0], .options = format("mode={:04o}", mode)};
    op.options.push_back('\0');
    if (size_ != 0) {
      op.options += format("size={}", size_);
      op.options.push_back('\0');
    }
    take_perms(op, mode);
    size_ = 0;
    add(std::move(op));
    return true;
  }
  bool directory(Words words) {
    RecipeOp op{.kind = Kind::kDirectory, .dest = words[0]};
    take_perms(op, 0755);
    add(std::move(op));
    return true;
  }
  bool data(Kind kind, mode_t usual, bool read_only, Words words) {
    RecipeOp op{.kind = kind, .read_only = read_only, .dest = words[1]};
    if (!read_number(op.fd, words[0])) return false;
    take_perms(op, usual);
    return add_with_fd(std::move(op));
  }
  bool symlink(Words words) {
    add({.kind = Kind::kSymlink, .source = words[0], .dest = words[1]});
    return true;
  }
  bool chmod(Words words) {
    const auto mode = number_of<mode_t>(words[0], 8);
    if (!mode || *mode > 07777) return refuse("--chmod takes an octal argument <= 07777");
    add({.kind = Kind::kChmod, .perms = *mode, .dest = words[1]});
    return true;
  }
  bool perms(Words words) {
    if (perms_) return refuse("--perms given twice for the same action");
    perms_ = number_of<mode_t>(words[0], 8);
    if (!perms_ || *perms_ > 07777) return refuse("--perms takes an octal argument <= 07777");
    return true;
  }
  bool size(Words words) {
    if (size_ != 0) return refuse("--size given twice for the same action");
    const char* const text = words[0].c_str();
    char* end = nullptr;
    errno = 0;
    size_ = std::strtoull(text, &end, 0);
    if (errno != 0 || !is_digit(*text) || *end != '\0' || size_ == 0) return refuse("--size takes a non-zero number of bytes");
    return size_ <= kMostTmpfs || refuse(format("--size (for tmpfs) is limited to {}", kMostTmpfs));
  }
  bool overlay_source(Words words) {
    layers_.push_back(words[0]);
    return true;
  }
  bool overlay(std::string_view option, std::size_t fewest, RecipeOp op) {
    if (layers_.size() < fewest)
      return refuse(format("{} requires at least {} --overlay-src", option, fewest == 1 ? "one" : "two"));
    op.kind = Kind::kOverlay;
    op.layers = std::exchange(layers_, {});
    add(std::move(op));
    return true;
  }
  bool label(std::string_view option) { return refuse(format("{}: labeling not supported on this system", option)); }
  bool seccomp(Words words) {
    if (!recipe_.filters.empty()) return refuse("--seccomp cannot be combined with --add-seccomp-fd");
    return descriptor("--seccomp", seccomp_fd_, words);
  }
  bool add_seccomp(Words words) {
    if (seccomp_fd_ >= 0) return refuse("--add-seccomp-fd cannot be combined with --seccomp");
    int fd = -1;
    return read_number(fd, words[0]) && add_filter(fd);
  }
  bool capability(Words words, bool wanted) {
    recipe_.set_capabilities = capabilities_asked_ = true;
    std::uint64_t which = kAllCapabilities;
    const std::string& name = words[0];
    if (!iequals(name, "all")) {
      const auto found = find_capability(name);
      if (!found) return refuse(format("unknown cap: {}", escaped(name)));
      which = std::uint64_t{1} << *found;
    }
    if (wanted) recipe_.capabilities |= which;
    else recipe_.capabilities &= ~which;
    return true;
  }

  Recipe& recipe() { return recipe_; }
  std::optional<unsigned>& uid() { return uid_; }
  std::optional<unsigned>& gid() { return gid_; }
  bool& user_try() { return user_try_; }
  bool& cgroup_try() { return cgroup_try_; }

 private:
  static bool is_variable(std::string_view name) { return !name.empty() && name.find('=') == std::string_view::npos; }
  static bool is_entry_of(std::string_view entry, std::string_view name) {
    return entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=';
  }
  // Pid 1 inside is a copy of us, whose memory the command may read.
  static void wipe(std::string& text) { ::explicit_bzero(text.data(), text.size()); }
  void only_last(std::string_view option) { out_.warnings.push_back(format("Only the last {} option will take effect", option)); }
  bool read_number(int& fd, const std::string& text) {
    const auto value = number_of<int>(text, 10);
    if (!value || *value < 0) return refuse(format("Invalid fd: {}", escaped(text)));
    fd = *value;
    return true;
  }
  void add(RecipeOp op) { recipe_.ops.push_back(std::move(op)); }
  bool add_with_fd(RecipeOp op) {
    // What was read once is at its end, and would be shown as nothing.
    if (std::ranges::find(recipe_.used_fds, op.fd) != recipe_.used_fds.end())
      return refuse(format("Invalid fd: {}: an option before has used it", op.fd));
    recipe_.used_fds.push_back(op.fd);
    add(std::move(op));
    return true;
  }
  void take_perms(RecipeOp& op, mode_t usual) {
    op.perms = perms_.value_or(usual);
    perms_.reset();
  }
  bool add_filter(int fd);
  bool parse(Words& words, bool in_file);
  bool check_modifiers(std::string_view option);
  bool finish(Words command);
  bool check_together();

  const Surroundings& surroundings_;
  Parsed& out_;
  Recipe& recipe_;
  std::optional<mode_t> perms_;
  std::uint64_t size_ = 0;
  std::vector<std::string> layers_;
  std::optional<std::string> argv0_;
  std::optional<unsigned> uid_, gid_;
  std::size_t words_ = 0;
  int seccomp_fd_ = -1;
  bool user_try_ = false, cgroup_try_ = false, hostname_ = false, capabilities_asked_ = false;
};

struct Option {
  std::string_view name;
  int takes;                  // words
  std::string_view operands;  // as the help shows them
  bool (*act)(Parser&, Parser::Words);
  std::string_view help;
};

using P = Parser;
using W = Parser::Words;

constexpr Option kOptions[] = {
    {"--help", 0, "", [](P& p, W) { return p.show(Parsed::Act::kHelp); }, "this text"},
    {"--version", 0, "", [](P& p, W) { return p.show(Parsed::Act::kVersion); }, "the version"},
    {"--args", 1, "FD", [](P& p, W w) { return p.args(w); }, "more options, each ended by a NUL, from FD"},
    {"--argv0", 1, "VALUE", [](P& p, W w) { return p.argv0(w); }, "what the command is told it was called"},
    {"--level-prefix", 0, "", [](P& p, W) { return p.level_prefix(); }, "<3> or <4> before each message"},
    {"--unshare-all", 0, "", [](P& p, W) { return p.unshare_all(); }, "a new namespace of every kind"},
    {"--share-net", 0, "", [](P& p, W) { return p.share_net(); }, "after --unshare-all: but keep the host's network"},
    {"--unshare-user", 0, "", [](P& p, W) { return p.unshare(CLONE_NEWUSER); },
     "a user namespace; an ordinary user gets one anyhow"},
    {"--unshare-user-try", 0, "", [](P& p, W) { return p.set(p.user_try()); }, "a user namespace where there are any"},
    {"--unshare-ipc", 0, "", [](P& p, W) { return p.unshare(CLONE_NEWIPC); }, "an ipc namespace"},
    {"--unshare-pid", 0, "", [](P& p, W) { return p.unshare(CLONE_NEWPID); }, "a pid namespace"},
    {"--unshare-net", 0, "", [](P& p, W) { return p.unshare(CLONE_NEWNET); }, "a network namespace with a loopback alone"},
    {"--unshare-uts", 0, "", [](P& p, W) { return p.unshare(CLONE_NEWUTS); }, "a uts namespace"},
    {"--unshare-cgroup", 0, "", [](P& p, W) { return p.unshare(CLONE_NEWCGROUP); }, "a cgroup namespace"},
    {"--unshare-cgroup-try", 0, "", [](P& p, W) { return p.set(p.cgroup_try()); }, "a cgroup namespace where there are any"},
    {"--userns", 1, "FD", [](P& p, W w) { return p.descriptor("--userns", p.recipe().userns, w); }, "the user namespace FD"},
    {"--userns2", 1, "FD", [](P& p, W w) { return p.descriptor("--userns2", p.recipe().userns2, w); },
     "with --userns: the one for the command"},
    {"--disable-userns", 0, "", [](P& p, W) { return p.set(p.recipe().disable_userns); }, "no user namespaces below this one"},
    {"--assert-userns-disabled", 0, "", [](P& p, W) { return p.set(p.recipe().assert_userns_disabled); },
     "fail if there can be user namespaces below"},
    {"--pidns", 1, "FD", [](P& p, W w) { return p.descriptor("--pidns", p.recipe().pidns, w); }, "the pid namespace FD"},
    {"--uid", 1, "UID", [](P& p, W w) { return p.id("uid", p.uid(), w); }, "user id inside"},
    {"--gid", 1, "GID", [](P& p, W w) { return p.id("gid", p.gid(), w); }, "group id inside"},
    {"--hostname", 1, "NAME", [](P& p, W w) { return p.hostname(w); }, "host name inside; with --unshare-uts"},
    {"--chdir", 1, "DIR", [](P& p, W w) { return p.chdir(w); }, "start in DIR"},
    {"--clearenv", 0, "", [](P& p, W) { return p.clear_environment(); }, "forget all variables"},
    {"--setenv", 2, "VAR VALUE", [](P& p, W w) { return p.set_variable(w); }, "set a variable"},
    {"--unsetenv", 1, "VAR", [](P& p, W w) { return p.unset(w); }, "forget a variable"},
    {"--lock-file", 1, "DEST", [](P& p, W w) { return p.lock_file(w); }, "hold a read lock on DEST meanwhile"},
    {"--sync-fd", 1, "FD", [](P& p, W w) { return p.descriptor("--sync-fd", p.recipe().sync_fd, w); }, "keep FD open meanwhile"},
    {"--bind", 2, "SRC DEST", [](P& p, W w) { return p.bind(w, {}); }, "show SRC of the host at DEST"},
    {"--bind-try", 2, "SRC DEST", [](P& p, W w) { return p.bind(w, {.if_exists = true}); }, "the same, where there is SRC"},
    {"--dev-bind", 2, "SRC DEST", [](P& p, W w) { return p.bind(w, {.devices = true}); }, "as --bind, and devices work"},
    {"--dev-bind-try", 2, "SRC DEST", [](P& p, W w) { return p.bind(w, {.devices = true, .if_exists = true}); },
     "the same, where there is SRC"},
    {"--ro-bind", 2, "SRC DEST", [](P& p, W w) { return p.bind(w, {.read_only = true}); }, "as --bind, for reading"},
    {"--ro-bind-try", 2, "SRC DEST", [](P& p, W w) { return p.bind(w, {.read_only = true, .if_exists = true}); },
     "the same, where there is SRC"},
    {"--bind-fd", 2, "FD DEST", [](P& p, W w) { return p.bind_fd(w, {}); }, "show what FD is open on at DEST"},
    {"--ro-bind-fd", 2, "FD DEST", [](P& p, W w) { return p.bind_fd(w, {.read_only = true}); }, "the same, for reading"},
    {"--remount-ro", 1, "DEST", [](P& p, W w) { return p.place(Kind::kReadOnly, w); },
     "make the mount at DEST read-only, not those below"},
    {"--overlay-src", 1, "SRC", [](P& p, W w) { return p.overlay_source(w); }, "a layer for the next overlay, the lowest first"},
    {"--overlay", 3, "RWSRC WORKDIR DEST",
     [](P& p, W w) { return p.overlay("--overlay", 1, {.source = w[0], .dest = w[2], .work = w[1]}); },
     "an overlay at DEST that writes to RWSRC"},
    {"--tmp-overlay", 1, "DEST", [](P& p, W w) { return p.overlay("--tmp-overlay", 1, {.own_upper = true, .dest = w[0]}); },
     "an overlay at DEST whose writes are dropped"},
    {"--ro-overlay", 1, "DEST", [](P& p, W w) { return p.overlay("--ro-overlay", 2, {.dest = w[0]}); },
     "a read-only overlay at DEST"},
    {"--exec-label", 1, "LABEL", [](P& p, W) { return p.label("--exec-label"); }, "refused: SELinux labels"},
    {"--file-label", 1, "LABEL", [](P& p, W) { return p.label("--file-label"); }, "refused: SELinux labels"},
    {"--proc", 1, "DEST", [](P& p, W w) { return p.place(Kind::kProc, w); }, "procfs at DEST"},
    {"--dev", 1, "DEST", [](P& p, W w) { return p.place(Kind::kDev, w); }, "a /dev of the plainest devices at DEST"},
    {"--tmpfs", 1, "DEST", [](P& p, W w) { return p.tmpfs(w); }, "an empty tmpfs at DEST"},
    {"--mqueue", 1, "DEST", [](P& p, W w) { return p.place(Kind::kMqueue, w); }, "message queues at DEST"},
    {"--dir", 1, "DEST", [](P& p, W w) { return p.directory(w); }, "a directory at DEST"},
    {"--file", 2, "FD DEST", [](P& p, W w) { return p.data(Kind::kFile, 0666, false, w); }, "a file at DEST with what FD gives"},
    {"--bind-data", 2, "FD DEST", [](P& p, W w) { return p.data(Kind::kBindData, 0600, false, w); },
     "the same, as a mount of its own"},
    {"--ro-bind-data", 2, "FD DEST", [](P& p, W w) { return p.data(Kind::kBindData, 0600, true, w); }, "the same, for reading"},
    {"--symlink", 2, "SRC DEST", [](P& p, W w) { return p.symlink(w); }, "a symbolic link at DEST that leads to SRC"},
    {"--seccomp", 1, "FD", [](P& p, W w) { return p.seccomp(w); }, "a seccomp filter from FD"},
    {"--add-seccomp-fd", 1, "FD", [](P& p, W w) { return p.add_seccomp(w); }, "one more seccomp filter from FD"},
    {"--block-fd", 1, "FD", [](P& p, W w) { return p.descriptor("--block-fd", p.recipe().block_fd, w); },
     "start when FD can be read"},
    {"--userns-block-fd", 1, "FD", [](P& p, W w) { return p.descriptor("--userns-block-fd", p.recipe().userns_block_fd, w); },
     "go on when FD can be read: whoever reads --info-fd maps the ids"},
    {"--info-fd", 1, "FD", [](P& p, W w) { return p.descriptor("--info-fd", p.recipe().info_fd, w); },
     "write pid and namespaces to FD"},
    {"--json-status-fd", 1, "FD", [](P& p, W w) { return p.descriptor("--json-status-fd", p.recipe().json_status_fd, w); },
     "write start and end to FD, a JSON object each"},
    {"--new-session", 0, "", [](P& p, W) { return p.set(p.recipe().new_session); }, "a session without the caller's terminal"},
    {"--die-with-parent", 0, "", [](P& p, W) { return p.set(p.recipe().die_with_parent); }, "end when the caller ends"},
    {"--as-pid-1", 0, "", [](P& p, W) { return p.set(p.recipe().as_pid_1); }, "no reaper: the command is pid 1"},
    {"--cap-add", 1, "CAP", [](P& p, W w) { return p.capability(w, true); }, "give the command a capability, or ALL"},
    {"--cap-drop", 1, "CAP", [](P& p, W w) { return p.capability(w, false); }, "take a capability from it, or ALL"},
    {"--perms", 1, "OCTAL", [](P& p, W w) { return p.perms(w); }, "mode of what the next option makes"},
    {"--size", 1, "BYTES", [](P& p, W w) { return p.size(w); }, "size of the next --tmpfs"},
    {"--chmod", 2, "OCTAL PATH", [](P& p, W w) { return p.chmod(w); }, "set the mode of PATH, which is there"},
};

const Option* find_option(std::string_view name) {
  const auto* const found = std::ranges::find(kOptions, name, &Option::name);
  return found == std::end(kOptions) ? nullptr : found;
}

bool Parser::args(Words words) {
  int fd = -1;
  if (!read_number(fd, words[0])) return false;
  const auto data = surroundings_.read_fd(fd);
  if (!data) return refuse(format("Can't read --args data: {}", std::strerror(data.error().errnum())));
  std::vector<std::string> more;
  for (std::size_t at = 0; at < data->size();) {
    const std::size_t end = std::min(data->find('\0', at), data->size());
    more.push_back(data->substr(at, end - at));
    at = end + 1;
  }
  Words rest(more);
  return parse(rest, true);
}

bool Parser::add_filter(int fd) {
  const auto data = surroundings_.read_fd(fd);
  if (!data) return refuse(format("Can't read seccomp data: {}", std::strerror(data.error().errnum())));
  if (data->size() % sizeof(sock_filter) != 0) return refuse("Invalid seccomp data, must be multiple of 8");
  if (data->size() / sizeof(sock_filter) > BPF_MAXINSNS) return refuse("Invalid seccomp data, longer than a filter can be");
  std::vector<sock_filter> filter(data->size() / sizeof(sock_filter));
  if (!filter.empty()) std::memcpy(filter.data(), data->data(), data->size());
  recipe_.filters.push_back(std::move(filter));
  return true;
}

// An option that is for the next one, and the next one is not for it.
bool Parser::check_modifiers(std::string_view option) {
  if (option != "--perms" && option != "--size") {
    if (perms_) return refuse("--perms must be followed by an option that creates a file");
    if (size_ != 0) return refuse("--size must be followed by --tmpfs");
  }
  if (option != "--overlay-src" && !layers_.empty())
    return refuse("--overlay-src must be followed by another --overlay-src or one of --overlay, --tmp-overlay, or --ro-overlay");
  return true;
}

bool Parser::parse(Words& words, bool in_file) {
  words_ += words.size();
  if (words_ > kMostWords) return refuse(format("Exceeded maximum number of arguments {}", kMostWords));
  while (!words.empty()) {
    const std::string& word = words.front();
    if (!word.starts_with('-')) break;
    if (word == "--") {
      words = words.subspan(1);
      break;
    }
    const Option* const option = find_option(word);
    if (option == nullptr) return refuse(format("Unknown option {}", escaped(word)));
    if (in_file && option->name == "--args") return refuse("--args not supported in arguments file");
    const auto takes = static_cast<std::size_t>(option->takes);
    constexpr std::string_view kCounts[] = {"no argument", "an argument", "two arguments", "three arguments"};
    if (words.size() <= takes) return refuse(format("{} takes {}", word, kCounts[takes]));
    if (!option->act(*this, words.subspan(1, takes)) || !check_modifiers(option->name)) return false;
    words = words.subspan(1 + takes);
  }
  return true;
}

bool Parser::check_together() {
  const bool user = (recipe_.namespaces & CLONE_NEWUSER) != 0;
  if (recipe_.userns_block_fd >= 0 && !user) return refuse("--userns-block-fd requires --unshare-user");
  if (recipe_.userns_block_fd >= 0 && recipe_.info_fd < 0) return refuse("--userns-block-fd requires --info-fd");
  if (recipe_.userns >= 0 && user) return refuse("--userns not compatible --unshare-user");
  if (recipe_.userns >= 0 && user_try_) return refuse("--userns not compatible --unshare-user-try");
  if (recipe_.disable_userns && !user) return refuse("--disable-userns requires --unshare-user");
  if (recipe_.disable_userns && recipe_.userns_block_fd >= 0)
    return refuse("--disable-userns is not compatible with --userns-block-fd");
  if (recipe_.pidns >= 0 && (recipe_.namespaces & CLONE_NEWPID) != 0)
    return refuse("--pidns together with --unshare-pid is not done: give one of them");
  if (recipe_.userns2 >= 0 && recipe_.userns < 0) return refuse("--userns2 requires --userns");
  return true;
}

bool Parser::finish(Words command) {
  if (!check_modifiers("")) return false;
  if (!check_together()) return false;
  if ((surroundings_.uid != 0 && recipe_.userns < 0) || (user_try_ && surroundings_.user_namespaces))
    recipe_.namespaces |= CLONE_NEWUSER;
  if (cgroup_try_) recipe_.namespaces |= CLONE_NEWCGROUP;
  const bool own_users = (recipe_.namespaces & CLONE_NEWUSER) != 0 || recipe_.userns >= 0;
  if (!capabilities_asked_ && surroundings_.uid == 0) recipe_.set_capabilities = false;
  if (command.empty()) return show(Parsed::Act::kUsage);
  recipe_.real_uid = surroundings_.uid;
  recipe_.real_gid = surroundings_.gid;
  recipe_.uid = uid_.value_or(surroundings_.uid);
  recipe_.gid = gid_.value_or(surroundings_.gid);
  if (!own_users && recipe_.uid != recipe_.real_uid) return refuse("Specifying --uid requires --unshare-user or --userns");
  if (!own_users && recipe_.gid != recipe_.real_gid) return refuse("Specifying --gid requires --unshare-user or --userns");
  if (hostname_ && (recipe_.namespaces & CLONE_NEWUTS) == 0) return refuse("Specifying --hostname requires --unshare-uts");
  if (recipe_.as_pid_1 && (recipe_.namespaces & CLONE_NEWPID) == 0) return refuse("Specifying --as-pid-1 requires --unshare-pid");
  if (recipe_.as_pid_1 && !recipe_.lock_files.empty()) return refuse("Specifying --as-pid-1 and --lock-file is not permitted");
  if (seccomp_fd_ >= 0 && !add_filter(seccomp_fd_)) return false;
  for (const int fd : {recipe_.userns, recipe_.userns2, recipe_.pidns, recipe_.block_fd}) {
    if (fd >= 0) recipe_.used_fds.push_back(fd);
  }
  recipe_.cwd = surroundings_.cwd;
  recipe_.terminal = surroundings_.terminal;
  for (const std::string& entry : recipe_.env) {
    if (is_entry_of(entry, "HOME")) recipe_.home = entry.substr(5);
  }
  recipe_.argv.assign(command.begin(), command.end());
  recipe_.program = recipe_.argv[0];
  if (argv0_) recipe_.argv[0] = *argv0_;
  return true;
}

void Parser::run(Words words) {
  if (parse(words, false)) (void)finish(words);
}

}  // namespace

Parsed parse_words(std::span<const std::string> words, const Surroundings& surroundings) {
  Parsed parsed;
  Parser(surroundings, parsed).run(words);
  return parsed;
}

std::string help_text(std::string_view name) {
  std::string text = format("usage: {} [OPTIONS...] [--] COMMAND [ARGS...]\n\n", escaped(name));
  for (const Option& option : kOptions) {
    std::string left(option.name);
    if (!option.operands.empty()) left += " " + std::string(option.operands);
    text += format("    {:<28} {}\n", left, option.help);
  }
  return text;
}

}  // namespace belljar::bwrap
