// belljar::txn::commit: the room txn knows how, the broker's rules say what may get its final name
// on the host.
//
// A commit gives names on the host to what a command wrote into a layer. The broker's rules, which
// judge acts of a command that runs, decide here which of these names the host gets. A change is
// translated into the act that would have made it (act_of).
//
// Git needs a second look. A directory becomes a git directory by the names in it, and these may
// come from two sides: some with this commit, others on the host already. Around answers which names
// will stand after the commit, and, for a change that completes such a directory
// (Without::kItself), which stood before it. When the change is the last missing name, what is on
// the host already is judged, too.
//
// While the command ran nobody may have judged anything (backend/paths/live_rules.h), so what a
// broker refuses must be refused here, or the next run without a transaction could go on from it. A
// hard link is such a thing: no single change shows it. Whoever writes to the one name later writes
// to the other, so both have to be names that may be linked (judge_links).
#include "txn/commit.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <ctime>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/paths/live_rules.h"
#include "base/format.h"
#include "base/paths.h"
#include "belljar/result.h"
#include "belljar/txn.h"
#include "broker/control_files.h"
#include "broker/file_rules.h"
#include "broker/git_judge.h"
#include "broker/git_names.h"
#include "policy/paths.h"
#include "txn/base.h"
#include "txn/compare.h"
#include "txn/store.h"
#include "txn/walk.h"

namespace belljar::txn {
namespace {

using broker::Act;

// Names near a change, as they will stand. `Without::kItself`: as if the change had not come yet.
enum class Without : std::uint8_t { kNothing, kItself };
class Around : public broker::Surroundings {
 public:
  explicit Around(const Candidate& candidate, Without without = Without::kNothing)
      : candidate_(candidate), path_(candidate.change.path), without_(without) {}
  // Near another name than that of the change.
  Around(const Candidate& candidate, std::string path) : candidate_(candidate), path_(std::move(path)) {}
  bool exists(int up, std::string_view name) const override {
    std::optional<std::string> folder = folder_above(up);
    if (!folder) return true;
    if (!folder->empty()) *folder += '/';
    *folder += name;
    if (without_ == Without::kItself && *folder == path_) return false;
    return candidate_.exists(*folder);
  }
  // What the host has now: a work tree that comes with the commit is one in which nobody has worked yet.
  bool stood_before(int up, std::string_view name, const timespec&) const override {
    const std::optional<std::string> folder = folder_above(up);
    if (!folder) return true;
    const UniqueFd there = candidate_.host_dir(*folder);
    struct stat now{};
    const bool found = there.valid() && ::fstatat(there.get(), std::string(name).c_str(), &now, AT_SYMLINK_NOFOLLOW) == 0;
    return found || (errno != ENOENT && errno != ENOTDIR);
  }

 private:
  // nullopt: above the workspace, which is not ours to look at.
  std::optional<std::string> folder_above(int up) const {
    std::string folder = path_;
    for (int i = 0; i <= up; ++i) {
      const std::size_t slash = folder.rfind('/');
      if (slash == std::string::npos && i < up) return std::nullopt;
      folder.resize(slash == std::string::npos ? 0 : slash);
    }
    return folder;
  }

  const Candidate& candidate_;
  const std::string path_;
  const Without without_ = Without::kNothing;
};

// The layers once more, for what no single change shows. The commit holds the transaction's lock meanwhile.
struct Shown {
  Transaction transaction;
  std::map<std::string, Delta> deltas;                    // without what is settled
  std::map<std::string, std::vector<std::string>> links;  // names that are one file, each with all of them

  // Whether the host gets something else under `path`: some names of a commit are what the host has anyway.
  bool changes(const std::string& path) const {
    const auto found = deltas.find(path);
    return found != deltas.end() && compare(transaction.store(), found->second).has_value();
  }
};

Result<Shown> read_shown(const Place& place) {
  Shown shown{
      .transaction = BELLJAR_TRY(Transaction::open(place, Store::Open::kExisting, Access::kRead)), .deltas = {}, .links = {}};
  std::map<std::pair<dev_t, ino_t>, std::vector<std::string>> files;
  std::vector<Delta> deltas = BELLJAR_TRY(walk(shown.transaction.store(), shown.transaction.meta().chain));
  for (const Delta& delta : deltas) {
    if (kind_of(delta.upper) == FileKind::kFile && delta.upper->st_nlink > 1)
      files[{delta.upper->st_dev, delta.upper->st_ino}].push_back(delta.path);
  }
  for (Delta& delta : drop_settled(shown.transaction, std::move(deltas))) {
    std::string path = delta.path;
    shown.deltas.emplace(std::move(path), std::move(delta));
  }
  for (const auto& [file, names] : files) {
    for (const std::string& name : names) shown.links.emplace(name, names);
  }
  return shown;
}

Act act_of(const Change& change) {
  const bool directory = change.after.kind == FileKind::kDirectory;
  if (change.kind == ChangeKind::kDeleted) return change.before.kind == FileKind::kDirectory ? Act::kRmdir : Act::kUnlink;
  const bool same_mode = change.before.mode == change.after.mode;
  if (change.kind == ChangeKind::kModified && !change.content) return same_mode ? Act::kAttributes : Act::kChmod;
  if (directory) return Act::kMkdir;
  if (change.after.kind == FileKind::kSymlink) return Act::kSymlink;
  if (change.after.kind == FileKind::kOther) return Act::kMknod;
  return change.kind == ChangeKind::kAdded ? Act::kCreate : Act::kWrite;
}

broker::FileRulesOptions options_of(const Place& place, const CommitOptions& given) {
  broker::FileRulesOptions options{.filesystem = given.filesystem, .roots = {place.workspace}, .exempt = {}, .hold_paths = true};
  if (!given.keep_git || given.filesystem.allow_git_removal) return options;
  options.keep_git = {place.workspace};
  backend::look_for_git(options, [](const std::string& root) { return root; });
  return options;
}

class Rules {
 public:
  Rules(const Place& place, const CommitOptions& options)
      : place_(place), workspace_(place.workspace), rules_(options_of(place, options)) {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    rules_.begin_run(now);
  }

  std::optional<std::string> operator()(const Candidate& candidate) const {
    const Change& change = candidate.change;
    if (change.path.empty()) return std::nullopt;
    const bool directory = (change.kind == ChangeKind::kDeleted ? change.before : change.after).kind == FileKind::kDirectory;
    const std::string path = workspace_ + "/" + change.path;
    broker::Ruling ruling = rules_.rule_for(act_of(change), path, directory, Around(candidate));
    if (change.kind == ChangeKind::kDeleted && ruling.answer == broker::Answer::kAllow && is_kept(path))
      ruling = rules_.removal_rule(path, Around(candidate));
    switch (ruling.answer) {
      case broker::Answer::kAllow:
        if (auto objection = judge_host(candidate, path, directory)) return objection;
        return judge_links(candidate);
      case broker::Answer::kRefuse:
        return format("{} ({}); allowed: {}", ruling.rule, ruling.origin == nullptr ? "" : to_string(*ruling.origin),
                      ruling.allowed);
      case broker::Answer::kMakesGitDir:  // not with the change itself in place
      case broker::Answer::kJudge:
        break;
    }
    if (auto objection = judge(candidate, ruling, path)) return objection;
    return judge_links(candidate);
  }

 private:
  // Of the workspace's git directory, what git itself never removes. Who removed the rest a commit cannot know: git gc, perhaps.
  bool is_kept(const std::string& path) const {
    constexpr std::string_view kLasting[] = {"HEAD", "config", "objects", "refs"};
    return rules_.keeps_git(path) ||
           (std::ranges::find(kLasting, file_name(path)) != std::end(kLasting) && rules_.keeps_git(parent_of(path)));
  }

  const Result<Shown>& shown() const {
    std::call_once(shown_once_, [this] { shown_.emplace(read_shown(place_)); });
    return *shown_;
  }

  // Names that are one file, and all of this commit, which leaves them so: each may be linked.
  std::optional<std::string> judge_links(const Candidate& candidate) const {
    const Change& change = candidate.change;
    if (change.after.kind != FileKind::kFile || change.after.links < 2) return std::nullopt;
    const Result<Shown>& all = shown();
    if (!all) return format("its other names cannot be told: {}", all.error().what());
    const auto found = all->links.find(change.path);
    if (found == all->links.end()) return std::nullopt;
    std::vector<std::string> names = found->second;
    std::erase_if(names, [&](const std::string& name) { return !candidate.is_chosen(name); });
    for (const std::string& name : names) {
      const broker::Ruling ruling = rules_.rule_for(Act::kHardLink, workspace_ + "/" + name, false, Around(candidate, name));
      if (names.size() > 1 && ruling.answer != broker::Answer::kAllow)
        return format("{}: it is one file with {}, a hard link; allowed: {}", ruling.rule,
                      name == change.path ? "another name" : quoted(name), ruling.allowed);
    }
    return std::nullopt;
  }

  // The change completes a git directory: what lies on the host already counts from then on, whoever put it there and when.
  std::optional<std::string> judge_host(const Candidate& candidate, const std::string& path, bool directory) const {
    const std::string& changed = candidate.change.path;
    if (!broker::is_git_marker(file_name(changed))) return std::nullopt;
    const broker::Ruling ruling = rules_.rule_for(act_of(candidate.change), path, directory, Around(candidate, Without::kItself));
    if (ruling.answer != broker::Answer::kMakesGitDir) return std::nullopt;
    const std::size_t slash = changed.rfind('/');
    const std::string folder = slash == std::string::npos ? "" : changed.substr(0, slash);
    const UniqueFd host = candidate.host_dir(folder);
    if (!host.valid()) return std::nullopt;  // a new one: all that is in it is judged as it comes
    const auto is_chosen = [&](const std::string& relative) {
      const std::string name = folder.empty() ? relative : folder + "/" + relative;
      return candidate.is_chosen(name) && shown() && shown()->changes(name);  // what an earlier part brought is the host's
    };
    const std::string top = folder.empty() ? workspace_ : workspace_ + "/" + folder;
    const auto objection = broker::git_dir_objection(rules_, host.get(), top, is_chosen);
    if (!objection) return std::nullopt;
    return format("{}: it makes {} a git directory, and there on the host is {}; allowed: {}", ruling.rule,
                  folder.empty() ? std::string("the workspace") : quoted(folder), *objection, ruling.allowed);
  }

  std::optional<std::string> judge(const Candidate& candidate, const broker::Ruling& ruling, const std::string& path) const {
    const auto text = candidate.content(broker::max_control_file(ruling.git));
    if (!text) return format("{}: its content cannot be judged: {}", ruling.rule, text.error().what());
    broker::GitContext context{.old_content = std::nullopt, .roots = rules_.roots(), .reaches = {}, .is_link = {}};
    context.is_link = [&](const std::string& at) {
      return at.size() > workspace_.size() + 1 && policy::is_within(at, workspace_) &&
             candidate.is_link(at.substr(workspace_.size() + 1));
    };
    std::optional<std::string> before;
    if (candidate.change.before.kind == FileKind::kFile) {
      if (auto old_text = candidate.old_content(broker::max_control_file(ruling.git))) before = *std::move(old_text);
    }
    if (before) context.old_content = *before;
    if (const auto objection = broker::git_objection(ruling.git, path, *text, context))
      return format("{}: {}; allowed: {}", ruling.rule, *objection, ruling.allowed);
    return std::nullopt;
  }

  const Place& place_;
  std::string workspace_;
  broker::FileRules rules_;
  mutable std::once_flag shown_once_;
  mutable std::optional<Result<Shown>> shown_;
};

}  // namespace

Result<CommitResult> commit(const Place& place, const CommitOptions& options) {
  const Rules rules(place, options);
  return commit_with(place, options, [&rules](const Candidate& candidate) { return rules(candidate); });
}

}  // namespace belljar::txn
