// The questions come in this order: the plain rules by path, the names that the broker keeps for itself, then
// the live rules. The removal of a name is asked twice, as the act and by removal_rule(), because the loss of a
// name is another question than the planting of one.
//
// Two kinds of act are refused outright although a command may do them. To move a directory means to judge
// every name below it under its new path, and to make a directory a repository of git can bring settings that
// run programs. The broker does both step by step while a command waits in its system call. A file call has no
// such steps, so its caller is sent to a command.
//
// A tree is checked as a whole before anything of it is removed. A refusal in the middle would otherwise leave
// half a tree.
#include "session/judge.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <memory>
#include <utility>

#include "base/format.h"
#include "broker/control_files.h"
#include "broker/file_call.h"
#include "broker/git_judge.h"
#include "session/files.h"

namespace belljar::session {
namespace {

using broker::Act;
using broker::Answer;
using broker::Ruling;

constexpr int kDeepestJudged = 512;  // a descriptor each; remove_tree_at() goes no deeper either

Error refusal(const std::string& path, const Ruling& ruling, std::string_view because = {}) {
  std::string reason = format("{}{}{}", ruling.rule, ruling.origin == nullptr ? "" : " ",  //
                              ruling.origin == nullptr ? "" : format("({})", to_string(*ruling.origin)));
  if (!because.empty()) reason += format(": {}", because);
  return Error(Code::kPermissionDenied, format("the policy refuses this for {}", quoted(path)))
      .reason(std::move(reason))
      .next(format("allowed: {}", ruling.allowed));
}

Error unjudged(const std::string& path, std::string_view because) {
  return Error(Code::kPermissionDenied, format("the policy refuses this for {}", quoted(path)))
      .reason(format("filesystem.protect: {}", because))
      .next("do it with a command inside, whose every step is judged");
}

// Rules for reading ask nothing of what stands beside a name.
class Anywhere final : public broker::Surroundings {
 public:
  bool exists(int, std::string_view) const override { return true; }
};

}  // namespace

Judge::Shared Judge::share() const { return rules_.directories == nullptr ? Shared() : Shared(*rules_.directories); }
Judge::Owned Judge::own() const { return rules_.directories == nullptr ? Owned() : Owned(*rules_.directories); }

Judge::MakeLock Judge::lock_to_make(std::string_view path) const {
  for (std::string_view rest = path; !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find('/'));
    if (broker::is_git_marker(part)) return {.shared = {}, .alone = own()};
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
  }
  return {.shared = share(), .alone = {}};
}

Result<void> Judge::may(const std::string& path, const std::string& canonical, Access wanted) const {
  if (rules_.plain == nullptr) return {};
  const FsEntry* rule = find_rule(*rules_.plain, canonical);
  const Access given = rule == nullptr ? Access::kNone : rule->access;
  if (given == Access::kWrite || (given == Access::kRead && wanted == Access::kRead)) return {};
  return Error(Code::kPermissionDenied, format("cannot {} {}", wanted == Access::kRead ? "read" : "write", quoted(path)))
      .reason(rule == nullptr
                  ? "no rule of the policy allows it"
                  : format("the policy gives {} to {} ({})", to_string(rule->access), quoted(rule->path), to_string(rule->origin)))
      .next("widen the policy, or use another path");
}

Result<void> Judge::may_read(const std::string& path, const std::string& canonical, bool is_dir) const {
  BELLJAR_CHECK(may(path, canonical, Access::kRead));
  if (rules_.live == nullptr || !rules_.live->reads_matter()) return {};
  const Ruling ruling = rules_.live->rule_for(Act::kRead, canonical, is_dir, Anywhere());
  if (ruling.answer == Answer::kAllow) return {};
  return refusal(path, ruling);
}

Result<Ruling> Judge::may_do(Act act, const std::string& path, const Site& site, bool is_dir) const {
  BELLJAR_CHECK(may(path, site.full, Access::kWrite));
  if (rules_.live == nullptr) return Ruling{};
  if (broker::is_reserved(site.name))
    return Error(Code::kPermissionDenied, format("cannot use {}", quoted(path)))
        .reason("names that begin with .belljar-new- are kept for files that are being judged");
  if (rules_.begin) rules_.begin();
  Ruling ruling = rules_.live->rule_for(act, site.full, is_dir, broker::DirSurroundings(site.parent.get()));
  const bool goes = act == Act::kUnlink || act == Act::kRmdir || act == Act::kRenameFrom;
  if (goes && ruling.answer == Answer::kAllow)
    ruling = rules_.live->removal_rule(site.full, broker::DirSurroundings(site.parent.get()));
  switch (ruling.answer) {
    case Answer::kAllow:
    case Answer::kJudge:
      return ruling;
    case Answer::kMakesGitDir:
      return unjudged(path, "it would make the directory a repository of git, whose settings run programs");
    case Answer::kRefuse:
      break;
  }
  return refusal(path, ruling);
}

Result<void> Judge::may_hold(const std::string& path, const Site& site, const Ruling& ruling, std::string_view content) const {
  if (content.size() > broker::max_control_file(ruling.git))
    return refusal(path, ruling, "git's control files are judged up to a size");
  std::optional<std::string> old;
  if (auto now = broker::read_control_file(site.parent.get(), site.name, ruling.git)) old = *std::move(now);
  const auto objection = broker::objection_to(*rules_.live, site.full, ruling.git, content, old);
  if (objection) return refusal(path, ruling, *objection);
  return {};
}

Result<void> Judge::may_move(const std::string& path, const Site& from, const Site& to) const {
  if (rules_.live == nullptr ||
      rules_.live->must_walk(from.full, to.full, broker::DirSurroundings(to.parent.get())) == broker::WalkScope::kNone)
    return {};
  return unjudged(path, "every name below the directory would have to be judged under its new path");
}

Result<void> Judge::check_not_mounted(const std::string& path, const Site& site) {
  if (site.whole)
    return Error(Code::kPermissionDenied, format("cannot rename or remove {}", quoted(path)))
        .reason("the policy opens it alone, and not the directory that it lies in")
        .next("change its content, or open the directory");
  if (!broker::is_mount_point(site.parent.get(), site.name)) return {};
  return Error(Code::kPermissionDenied, format("cannot rename or remove {}", quoted(path)))
      .reason("a rule of the policy is held by a mount on it or below it")
      .next("take what is beside it, or drop the rule");
}

namespace {

using Refuse = std::function<Result<void>(const Site& site, bool is_dir)>;

Result<void> check_below(const std::string& path, const Site& top, const Refuse& check, int depth) {
  if (depth == 0)
    return Error(Code::kResourceExhausted, format("cannot remove {}", quoted(path)))
        .reason(format("its directories lie more than {} deep", kDeepestJudged))
        .next("remove it in parts");
  const int own = ::openat(top.parent.get(), top.name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(own < 0 ? nullptr : ::fdopendir(own), ::closedir);
  if (stream == nullptr) {
    if (own >= 0) ::close(own);
    return file_error(errno, "look through", path, "open");
  }
  Site site{UniqueFd(::openat(own, ".", O_PATH | O_DIRECTORY | O_CLOEXEC)), {}, {}};
  if (!site.parent.valid()) return file_error(errno, "look through", path, "open");
  while (const dirent* entry = ::readdir(stream.get())) {
    site.name = entry->d_name;
    if (site.name == "." || site.name == "..") continue;
    site.full = top.full + "/" + site.name;
    struct stat now{};
    if (::fstatat(own, site.name.c_str(), &now, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) != 0) continue;
    BELLJAR_CHECK(check(site, S_ISDIR(now.st_mode)));
    if (S_ISDIR(now.st_mode)) BELLJAR_CHECK(check_below(path, site, check, depth - 1));
  }
  return {};
}

}  // namespace

Result<void> Judge::may_clear(const std::string& path, const Site& site) const {
  const auto check = [&](const Site& below, bool is_dir) -> Result<void> {
    BELLJAR_CHECK(check_not_mounted(below.full, below));
    BELLJAR_TRY(may_do(is_dir ? Act::kRmdir : Act::kUnlink, below.full, below, is_dir));
    return {};
  };
  return check_below(path, site, check, kDeepestJudged);
}

}  // namespace belljar::session
