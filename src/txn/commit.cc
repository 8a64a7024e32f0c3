// A transaction applied to the workspace: all of it or nothing, whatever the host did meanwhile and wherever
// the commit is cut off.
//
//   1. Plan. Each changed name is compared in three ways: what the layers have, what the host has now, and
//      the base, which is what both had in common (base.h). A name that the host did not touch is applied;
//      text that both changed in different lines is merged; mode, access control list and attributes are
//      merged each by itself; anything else is a conflict. A single conflict or refusal ends the commit here,
//      with nothing done.
//   2. Stage. All that will stand in the workspace is made first, in a directory on the same mount
//      (stage.h), but for what can go from the layer as it is (handover.h). A full disk ends here.
//   3. Journal. The steps are written down and made durable. From here on the commit will be finished,
//      before it has not begun (journal.h).
//   4. Judge again, under the tree lock. What came to the host since the plan may be the other half of
//      something that the rules refuse, a git directory say. From here until everything is in place no
//      sandbox and no other commit of this user acts below the workspace.
//   5. Apply, one rename for each name (apply.h). After each rename the thing that went is compared with
//      what was expected, when nobody else can change what the name means. Any difference takes all steps
//      back.
//   6. Retire. One rename takes layers and journal away together: files of a layer may have been handed
//      over to the host by a hard link, and no later run may find them in a layer.
//
// recover() looks at which of the marks are there and goes on: no journal, nothing happened; `undo`, the
// steps are taken back; `done`, only step 6 is left; otherwise step 5 begins again, where steps that were
// done are recognised by inode number.
//
// Comparing before the rename instead of after it would leave a gap in which somebody's edit is lost, and
// there is no rename that takes a condition.
#include "txn/commit.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/unique_fd.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "belljar/txn.h"
#include "kernel/tree_lock.h"
#include "txn/apply.h"
#include "txn/base.h"
#include "txn/compare.h"
#include "txn/files.h"
#include "txn/handover.h"
#include "txn/journal.h"
#include "txn/lines.h"
#include "txn/meta.h"
#include "txn/stage.h"
#include "txn/store.h"
#include "txn/walk.h"

namespace belljar::txn {
namespace {

constexpr std::uint64_t kMostJudged = 256U << 20;

// What will be done, or why nothing is.
struct Plan {
  CommitResult result;
  std::vector<PlannedChange> chosen;
  std::vector<std::string> paths;  // all that were asked for, also those that the host has already
  std::vector<Delta> deltas;       // of the whole transaction
  std::vector<Delta> kept;         // files of several names whose bytes are the host's
};

// A list for access control goes with the mode, whose group bits are its mask, acl(5).
struct Rights {
  std::pair<std::uint32_t, std::map<std::string, std::string>> access;
  std::map<std::string, std::string> attributes;
};

Rights rights_of(std::uint32_t mode, std::map<std::string, std::string> attributes) {
  Rights rights{{mode & 07777U, {}}, std::move(attributes)};
  for (auto at = rights.attributes.begin(); at != rights.attributes.end();) {
    const auto one = at++;
    if (one->first.starts_with("system.")) rights.access.second.insert(rights.attributes.extract(one));
  }
  return rights;
}

// nullopt: both changed it, in different ways.
template <typename Value>
std::optional<Value> merge_value(const Value& then, const Value& ours, const Value& theirs) {
  if (ours == then || ours == theirs) return theirs;
  return theirs == then ? std::optional(ours) : std::nullopt;
}

class Planner {
 public:
  Planner(const Transaction& transaction, const CommitOptions& options, const Objection& objection)
      : transaction_(transaction), store_(transaction.store()), options_(options), objection_(objection) {}

  // What the host has now may be more than run() saw: `chosen` and `changes` go together, none was refused then.
  std::vector<Refused> judge_again(const std::vector<PlannedChange>& chosen, const std::vector<Change>& changes) const {
    std::vector<Refused> refused;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      if (auto reason = objection_to(chosen[i].delta, changes[i], merged_text(chosen[i])))
        refused.push_back({changes[i].path, *std::move(reason)});
    }
    return refused;
  }

  Result<Plan> run() {
    deltas_ = BELLJAR_TRY(walk(store_, transaction_.meta().chain));
    bases_ = BELLJAR_TRY(load_bases(transaction_));
    BELLJAR_CHECK(check_paths());
    for (const Delta& delta : deltas_) {
      if (is_chosen(delta)) asked_.emplace(delta.path, kind_of(delta.upper));
    }
    const auto settled = find_settled(store_, bases_, deltas_);
    for (std::size_t i = 0; i < deltas_.size(); ++i) {
      if (!settled[i]) BELLJAR_CHECK(consider(deltas_[i]));
    }
    plan_.deltas = std::move(deltas_);
    return std::move(plan_);
  }

 private:
  // A name that nothing changed below is a slip of the finger.
  Result<void> check_paths() const {
    for (const std::string& path : options_.paths) {
      if (path.empty())
        return Error(Code::kInvalidArgument, "cannot commit a path without a name").next("leave `paths` empty for all");
      const bool known = std::ranges::any_of(deltas_, [&](const Delta& delta) { return within(delta.path, path); });
      if (!known)
        return Error(Code::kNotFound, format("cannot commit {}", quoted(path)))
            .reason("the transaction changed nothing of that name")
            .next("`belljar diff` lists what it changed");
    }
    return {};
  }

  // What was asked for, and the new directories on the way to it.
  bool is_chosen(const Delta& delta) const {
    if (options_.paths.empty()) return true;
    return std::ranges::any_of(options_.paths, [&](const std::string& path) {
      const bool way = kind_of(delta.upper) == FileKind::kDirectory && kind_of(delta.lower) != FileKind::kDirectory;
      return within(delta.path, path) || (way && within(path, delta.path));
    });
  }

  Result<void> consider(const Delta& delta) {
    if (!is_chosen(delta)) return {};
    plan_.paths.push_back(delta.path);
    const auto change = compare(store_, delta);
    if (!change) {
      keep(delta);
      return {};
    }
    plan_.result.changes.push_back(*change);
    if (auto reason = refusal(delta, *change)) {
      plan_.result.refused.push_back({delta.path, *std::move(reason)});
      return {};
    }
    PlannedChange chosen{delta, change->content, std::nullopt};
    if (auto conflict = BELLJAR_TRY(three_way(delta, chosen))) {
      plan_.result.conflicts.push_back({delta.path, *std::move(conflict)});
      return {};
    }
    // Two halves of which each is harmless may make a whole that is not.
    if (const std::string* merged = merged_text(chosen)) {
      if (auto reason = objection_to(delta, *change, merged)) {
        plan_.result.refused.push_back({delta.path, *std::move(reason)});
        return {};
      }
    }
    if (!chosen.content && !chosen.merged) keep(delta);
    plan_.chosen.push_back(std::move(chosen));
    return {};
  }

  void keep(const Delta& delta) {
    const bool files = delta.upper && delta.lower && S_ISREG(delta.upper->st_mode) && S_ISREG(delta.lower->st_mode);
    if (files && delta.upper->st_nlink > 1) plan_.kept.push_back(delta);
  }

  std::optional<std::string> refusal(const Delta& delta, const Change& change) const {
    if (change.unread) return "its owner may not look into it: `chmod u+rwx` it, with `belljar run --txn` or on the host";
    constexpr mode_t kSetIds = 06000;
    if (change.after.kind == FileKind::kFile && (change.after.mode & kSetIds & ~change.before.mode) != 0)
      return "it would set the set-user-ID or set-group-ID bit";
    if (options_.judge) {
      if (auto reason = options_.judge(change)) return reason;
    }
    return objection_to(delta, change);
  }

  static const std::string* merged_text(const PlannedChange& chosen) {
    return chosen.merged && chosen.merged->text ? &*chosen.merged->text : nullptr;
  }

  // `merged`: what will stand there instead of the layer's bytes.
  std::optional<std::string> objection_to(const Delta& delta, const Change& change, const std::string* merged = nullptr) const {
    if (!objection_) return std::nullopt;
    const auto text_of = [](int root, const std::string& path, FileKind kind, std::uint64_t most) -> Result<std::string> {
      if (kind != FileKind::kSymlink) return read_whole(root, path, std::min(most, kMostJudged));
      const ParentAndName spot = BELLJAR_TRY(open_parent(root, path));
      return read_link(spot.parent.get(), spot.name);
    };
    const Candidate candidate{
        change,
        [&](std::uint64_t most) -> Result<std::string> {
          if (merged == nullptr) return text_of(store_.layers(), layer_path(delta.layer, delta.path), change.after.kind, most);
          if (merged->size() > most) return Error(Code::kOutOfRange, "cannot judge what was merged").reason("it is too large");
          return *merged;
        },
        [&](std::uint64_t most) { return text_of(store_.workspace(), delta.path, change.before.kind, most); },
        [&](const std::string& path) { return exists(path); },
        [&](const std::string& path) { return is_link(path); },
        [&](const std::string& path) { return asked_.contains(path); },
        [&](const std::string& path) { return UniqueFd(open_beneath(store_.workspace(), path, O_PATH | O_DIRECTORY)); }};
    return objection_(candidate);
  }

  bool exists(const std::string& path) const {
    if (const auto asked = asked_.find(path); asked != asked_.end()) return asked->second != FileKind::kNone;
    const auto spot = open_parent(store_.workspace(), path);
    if (!spot) return spot.error().errnum() != ENOENT && spot.error().errnum() != ENOTDIR;
    return find_status(spot->parent.get(), spot->name).has_value();
  }

  bool is_link(const std::string& path) const {
    if (const auto asked = asked_.find(path); asked != asked_.end()) return asked->second == FileKind::kSymlink;
    const auto spot = open_parent(store_.workspace(), path);
    return spot && kind_of(find_status(spot->parent.get(), spot->name)) == FileKind::kSymlink;
  }

  // Why it cannot be applied, or nothing; what a merge gives goes into `chosen`.
  Result<std::optional<std::string>> three_way(const Delta& delta, PlannedChange& chosen) const {
    const HostSide side = judge_host(store_, bases_, delta);
    if (side == HostSide::kUnchanged) return std::optional<std::string>();
    const auto base = bases_.find(delta.path);
    if (side == HostSide::kUnknown)
      return std::optional<std::string>("it was changed on the host while the command ran, or just before");
    if (base != bases_.end() && base->second.state == Base::State::kKnown && delta.upper && delta.lower) {
      const mode_t type = delta.upper->st_mode & S_IFMT;
      const bool same_type = type == (delta.lower->st_mode & S_IFMT) && type == (base->second.mode & S_IFMT);
      if (same_type && (type == S_IFREG || type == S_IFDIR)) return merge_both(base->second, chosen);
    }
    if (!delta.lower) return std::optional<std::string>("it was removed on the host meanwhile");
    const bool made = base != bases_.end() && base->second.state == Base::State::kAbsent;
    return std::optional<std::string>(made ? "it was made on the host meanwhile" : "it was changed on the host meanwhile");
  }

  // Content, rights and attributes each by itself: of a side that is as it was then, the other one is taken.
  Result<std::optional<std::string>> merge_both(const Base& base, PlannedChange& chosen) const {
    const Delta& delta = chosen.delta;
    const UniqueFd upper = open_upper(store_, delta);
    const UniqueFd lower = open_lower(store_, delta.path);
    if (!upper.valid() || !lower.valid()) return std::optional<std::string>("it cannot be read, and the host changed it meanwhile");
    const Rights then = rights_of(base.mode, base.attributes);
    const Rights ours = rights_of(delta.upper->st_mode, read_attributes(upper.get()));
    const Rights theirs = rights_of(delta.lower->st_mode, read_attributes(lower.get()));
    const auto access = merge_value(then.access, ours.access, theirs.access);
    if (!access) return std::optional<std::string>("its mode was changed on the host meanwhile, in another way");
    const auto attributes = merge_value(then.attributes, ours.attributes, theirs.attributes);
    if (!attributes) return std::optional<std::string>("its attributes were changed on the host meanwhile, in another way");
    Merged merged{.text = std::nullopt, .mode = access->first, .attributes = *attributes};
    merged.attributes.insert(access->second.begin(), access->second.end());
    if (chosen.content && layer_has_content(store_, base, delta)) chosen.content = false;
    if (chosen.content && !host_has_content(store_, base, delta)) {
      merged.text = merge_text(base, delta);
      if (!merged.text) {
        const bool text = !base.content.empty();
        return std::optional<std::string>(text ? "the same lines were changed on the host meanwhile, in another way"
                                               : "it was changed on the host meanwhile");
      }
    }
    chosen.merged = std::move(merged);
    return std::optional<std::string>();
  }

  std::optional<std::string> merge_text(const Base& base, const Delta& delta) const {
    if (base.content.empty()) return std::nullopt;
    const auto then = read_whole(transaction_.dir(), "bases/" + base.content, kMostMergeable);
    const auto ours = read_whole(store_.layers(), layer_path(delta.layer, delta.path), kMostMergeable);
    const auto theirs = read_whole(store_.workspace(), delta.path, kMostMergeable);
    if (!then || !ours || !theirs || is_binary(*ours) || is_binary(*theirs) || is_binary(*then)) return std::nullopt;
    return merge(*then, *ours, *theirs);
  }

  const Transaction& transaction_;
  const Store& store_;
  const CommitOptions& options_;
  const Objection& objection_;
  std::vector<Delta> deltas_;
  std::map<std::string, FileKind> asked_;  // what was asked for, as it is afterwards
  Bases bases_;
  Plan plan_;
};

// Everything is in place.
Result<void> retire(Transaction& transaction, Journal& journal, const Record& record) {
  if (!record.whole) {
    BELLJAR_CHECK(renew_bases(transaction, record.paths));
    return journal.end();
  }
  // One rename takes layers and journal away together: files that were handed over are the host's now, and no later run may find
  // them in a layer.
  BELLJAR_CHECK(journal.drop_stage());
  return transaction.end();
}

Roots roots_of(const Transaction& transaction, const Journal& journal) {
  const Store& store = transaction.store();
  return {.workspace = store.workspace(), .stage = journal.stage(), .layers = store.layers()};
}

Result<void> undo_commit(const Transaction& transaction, Journal& journal, const Record& record) {
  if (!journal.has("undo")) BELLJAR_CHECK(journal.mark("undo"));
  auto undone = undo(roots_of(transaction, journal), record.ops);
  restore_modes(transaction.store().workspace(), record.closed);
  // What somebody wrote to in the meantime stays as it is, and is said; trying again would not change that.
  if (!undone && undone.error().code() != Code::kAborted) return undone;
  BELLJAR_CHECK(journal.end());
  return undone;
}

Result<void> finish(Transaction& transaction, Journal& journal, const Record& record) {
  if (auto applied = txn::apply(roots_of(transaction, journal), record.ops); !applied) {
    BELLJAR_CHECK(undo_commit(transaction, journal, record));
    return applied;
  }
  auto closed = record.closed;  // a mode that is part of the change counts
  for (const Op& op : record.ops) {
    const auto found = op.kind == Op::Kind::kMeta ? closed.find(op.path) : closed.end();
    if (found != closed.end()) found->second = op.mode;
  }
  restore_modes(transaction.store().workspace(), closed);
  BELLJAR_CHECK(journal.mark("done"));
  return retire(transaction, journal, record);
}

// Files of the top layer may be handed over: nobody else has it, and it goes with the transaction.
std::optional<LayerId> layer_to_give(const Transaction& transaction, const Journal& journal, bool whole) {
  if (!whole || !journal.stage_is_here()) return std::nullopt;
  return transaction.meta().chain.back();
}

// What is first in `chosen`, with all that the layers hold below it. `deltas` begins at the same name. Empty: the host has
// something there, or not all of it is to be committed.
std::span<const PlannedChange> new_tree(std::span<const PlannedChange> chosen, std::span<const Delta> deltas) {
  const std::string& top = deltas.front().path;
  if (deltas.front().lower) return {};
  std::size_t count = 1;
  const auto goes_on = [&](std::size_t i) { return i < deltas.size() && within(deltas[i].path, top); };
  for (; goes_on(count); ++count) {
    if (count == chosen.size() || chosen[count].delta.path != deltas[count].path) return {};
  }
  return chosen.first(count);
}

Result<std::vector<Op>> stage_all(const Transaction& transaction, const Journal& journal, const Plan& plan, bool whole) {
  const std::optional<LayerId> given = layer_to_give(transaction, journal, whole);
  Stager stager(transaction.store(), journal.stage(), given);
  Handover handover(transaction.store(), given.value_or(0));
  for (const Delta& one : plan.kept) stager.keep(one);
  std::span<const PlannedChange> left = plan.chosen;
  for (auto delta = plan.deltas.begin(); !left.empty();) {
    const PlannedChange& one = left.front();
    while (delta->path != one.delta.path) ++delta;
    const auto tree = given && !stager.is_below_last(one.delta.path) ? new_tree(left, {delta, plan.deltas.end()}) : left.first(0);
    if (!tree.empty() && handover.fits(tree)) {
      stager.add_as_is(tree, *given);
      left = left.subspan(tree.size());
    } else {
      BELLJAR_CHECK(stager.add(one));
      left = left.subspan(1);
    }
  }
  return stager.finish_all();
}

// From the last look at the host until everything is in place no sandbox and no other commit of this user acts on names below the
// workspace: what either makes could be the other half of a git directory.
Result<kernel::TreeLock> lock_of(const Place& place) {
  return kernel::TreeLock::open(kernel::tree_locks_in(place.state_dir), {place.workspace});
}

// What is refused now was not when it was planned; then nothing is done.
Result<std::vector<Refused>> carry_out(const Place& place, Transaction& transaction, const Planner& planner, Plan plan,
                                       const std::vector<Change>& changes, bool whole) {
  kernel::TreeLock others = BELLJAR_TRY(lock_of(place));
  Journal journal = BELLJAR_TRY(Journal::begin(transaction));
  auto ops = stage_all(transaction, journal, plan, whole);
  Record record;
  if (ops) {
    record.ops = *std::move(ops);
    record.closed = closed_directories(transaction.store().workspace(), record.ops);
    record.whole = whole;
    record.paths = std::move(plan.paths);
    auto written = journal.write(record);
    if (written) {
      const std::scoped_lock alone(others);
      auto refused = planner.judge_again(plan.chosen, changes);
      if (refused.empty()) BELLJAR_CHECK(finish(transaction, journal, record));
      else BELLJAR_CHECK(journal.end());
      return refused;
    }
    ops = std::move(written).error();
  }
  Error failed = std::move(ops).error();
  BELLJAR_CHECK(journal.end());
  return failed;
}

Result<bool> recover_one(const Place& place, Transaction& transaction) {
  Journal journal = BELLJAR_TRY(Journal::open(transaction));
  if (!journal.has("journal")) {
    BELLJAR_CHECK(journal.end());
    return false;
  }
  const Record record = BELLJAR_TRY(journal.read());
  kernel::TreeLock others = BELLJAR_TRY(lock_of(place));
  const std::scoped_lock alone(others);
  if (journal.has("done")) {
    BELLJAR_CHECK(retire(transaction, journal, record));
    return true;
  }
  if (journal.has("undo")) {
    BELLJAR_CHECK(undo_commit(transaction, journal, record));
    return false;
  }
  const auto finished = finish(transaction, journal, record);
  if (finished) return true;
  if (transaction.interrupted()) return finished.error();
  return false;
}

}  // namespace

Result<CommitResult> commit_with(const Place& place, const CommitOptions& options, const Objection& objection) {
  Transaction transaction = BELLJAR_TRY(Transaction::open(place, Store::Open::kExisting, Access::kChange));
  BELLJAR_CHECK(observe(transaction));
  Planner planner(transaction, options, objection);
  Plan plan = BELLJAR_TRY(planner.run());
  if (!plan.result.conflicts.empty() || !plan.result.refused.empty()) return std::move(plan.result);
  for (const PlannedChange& one : plan.chosen) {
    if (one.merged) plan.result.merged.push_back(one.delta.path);
  }
  CommitResult result = std::move(plan.result);
  if (!options.paths.empty()) BELLJAR_CHECK(note_ways(transaction, plan.deltas, plan.paths));
  result.refused = BELLJAR_TRY(carry_out(place, transaction, planner, std::move(plan), result.changes, options.paths.empty()));
  result.applied = result.refused.empty();
  if (!result.applied) result.merged.clear();
  return result;
}

Result<std::vector<Recovered>> recover(const Place& place) {
  std::vector<Recovered> all;
  for (const Info& info : BELLJAR_TRY(list(place))) {
    if (!info.interrupted) continue;
    Place one = place;
    one.name = info.name;
    Transaction transaction = BELLJAR_TRY(Transaction::open_interrupted(one));
    if (!transaction.interrupted()) continue;
    all.push_back({info.name, BELLJAR_TRY(recover_one(one, transaction))});
  }
  BELLJAR_CHECK(sweep(place));
  return all;
}

}  // namespace belljar::txn
