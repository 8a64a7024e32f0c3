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
#include "txn/commit.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "base/paths.h"
#include "belljar/txn.h"
#include "broker/control_files.h"
#include "broker/file_rules.h"
#include "broker/git_judge.h"
#include "broker/git_names.h"
#include "policy/paths.h"

namespace belljar::txn {
namespace {

using broker::Act;

// Names near a change, as they will stand. `Without::kItself`: as if the change had not come yet.
enum class Without : std::uint8_t { kNothing, kItself };
class Around : public broker::Surroundings {
 public:
  explicit Around(const Candidate& candidate, Without without = Without::kNothing) : candidate_(candidate), without_(without) {}
  bool exists(int up, std::string_view name) const override {
    std::string folder = candidate_.change.path;
    for (int i = 0; i <= up; ++i) {
      const std::size_t slash = folder.rfind('/');
      if (slash == std::string::npos && i < up) return true;  // above the workspace: not ours to look at
      folder.resize(slash == std::string::npos ? 0 : slash);
    }
    if (!folder.empty()) folder += '/';
    folder += name;
    if (without_ == Without::kItself && folder == candidate_.change.path) return false;
    return candidate_.exists(folder);
  }

 private:
  const Candidate& candidate_;
  const Without without_;
};

Act act_of(const Change& change) {
  const bool directory = change.after.kind == FileKind::kDirectory;
  if (change.kind == ChangeKind::kDeleted) return change.before.kind == FileKind::kDirectory ? Act::kRmdir : Act::kUnlink;
  if (change.kind == ChangeKind::kModified && !change.content) return change.attributes ? Act::kAttributes : Act::kChmod;
  if (directory) return Act::kMkdir;
  if (change.after.kind == FileKind::kSymlink) return Act::kSymlink;
  if (change.after.kind == FileKind::kOther) return Act::kMknod;
  return change.kind == ChangeKind::kAdded ? Act::kCreate : Act::kWrite;
}

class Rules {
 public:
  Rules(const Place& place, const Filesystem& filesystem)
      : workspace_(place.workspace),
        rules_({.filesystem = filesystem, .roots = {place.workspace}, .exempt = {}, .hold_paths = true}) {}

  std::optional<std::string> operator()(const Candidate& candidate) const {
    const Change& change = candidate.change;
    if (change.path.empty()) return std::nullopt;
    const bool directory = (change.kind == ChangeKind::kDeleted ? change.before : change.after).kind == FileKind::kDirectory;
    const std::string path = workspace_ + "/" + change.path;
    const broker::Ruling ruling = rules_.rule_for(act_of(change), path, directory, Around(candidate));
    switch (ruling.answer) {
      case broker::Answer::kAllow:
        return judge_host(candidate, path, directory);
      case broker::Answer::kRefuse:
        return format("{} ({}); allowed: {}", ruling.rule, ruling.origin == nullptr ? "" : to_string(*ruling.origin),
                      ruling.allowed);
      case broker::Answer::kMakesGitDir:  // not with the change itself in place
      case broker::Answer::kJudge:
        break;
    }
    return judge(candidate, ruling, path);
  }

 private:
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
      return candidate.is_chosen(folder.empty() ? relative : folder + "/" + relative);
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

  std::string workspace_;
  broker::FileRules rules_;
};

}  // namespace

Result<CommitResult> commit(const Place& place, const CommitOptions& options) {
  const Rules rules(place, options.filesystem);
  return commit_with(place, options, [&rules](const Candidate& candidate) { return rules(candidate); });
}

}  // namespace belljar::txn
