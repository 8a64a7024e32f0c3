#include "txn/commit.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "base/format.h"
#include "txn/apply.h"
#include "txn/base.h"
#include "txn/compare.h"
#include "txn/files.h"
#include "txn/journal.h"
#include "txn/lines.h"
#include "txn/store.h"
#include "txn/walk.h"

namespace belljar::txn {
namespace {

constexpr std::uint64_t kMostJudged = 256U << 20;

// What will be done, or why nothing is.
struct Plan {
  CommitResult result;
  std::vector<Chosen> chosen;
};

class Planner {
 public:
  Planner(const Transaction& transaction, const CommitOptions& options, const Objection& objection)
      : transaction_(transaction), store_(transaction.store()), options_(options), objection_(objection) {}

  Result<Plan> run() {
    deltas_ = BELLJAR_TRY(walk(store_, transaction_.meta().chain));
    bases_ = BELLJAR_TRY(load_bases(transaction_.dir()));
    BELLJAR_CHECK(check_paths());
    for (const Delta& delta : deltas_) {
      if (delta.upper) shown_.insert(delta.path);
    }
    for (const Delta& delta : deltas_) BELLJAR_CHECK(consider(delta));
    return std::move(plan_);
  }

 private:
  // A name that nothing changed below is a slip of the finger.
  Result<void> check_paths() const {
    for (const std::string& path : options_.paths) {
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
    const auto change = compare(store_, delta);
    if (!change) return {};
    plan_.result.changes.push_back(*change);
    if (auto reason = refusal(delta, *change)) {
      plan_.result.refused.push_back({delta.path, *std::move(reason)});
      return {};
    }
    Chosen chosen{delta, change->content, std::nullopt};
    if (auto conflict = BELLJAR_TRY(three_way(delta, chosen))) plan_.result.conflicts.push_back({delta.path, *std::move(conflict)});
    else plan_.chosen.push_back(std::move(chosen));
    return {};
  }

  std::optional<std::string> refusal(const Delta& delta, const Change& change) const {
    constexpr mode_t kSetIds = 06000;
    if (change.after.kind == FileKind::kFile && (change.after.mode & kSetIds & ~change.before.mode) != 0)
      return "it would set the set-user-ID or set-group-ID bit";
    if (options_.judge) {
      if (auto reason = options_.judge(change)) return reason;
    }
    if (!objection_) return std::nullopt;
    const auto text_of = [](int root, const std::string& path, FileKind kind, std::uint64_t most) -> Result<std::string> {
      if (kind != FileKind::kSymlink) return read_whole(root, path, std::min(most, kMostJudged));
      const Spot spot = BELLJAR_TRY(find_spot(root, path));
      return read_link(spot.parent.get(), spot.name);
    };
    const Candidate candidate{
        change,
        [&](std::uint64_t most) { return text_of(store_.layers(), layer_path(delta.layer, delta.path), change.after.kind, most); },
        [&](std::uint64_t most) { return text_of(store_.workspace(), delta.path, change.before.kind, most); },
        [&](const std::string& path) { return exists(path); }};
    return objection_(candidate);
  }

  bool exists(const std::string& path) const {
    if (shown_.contains(path)) return true;
    const auto spot = find_spot(store_.workspace(), path);
    return spot && find_status(spot->parent.get(), spot->name).has_value();
  }

  // Why it cannot be applied, or nothing; what a merge gives goes into `chosen`.
  Result<std::optional<std::string>> three_way(const Delta& delta, Chosen& chosen) const {
    const HostSide side = judge_host(store_, transaction_.dir(), bases_, delta);
    if (side == HostSide::kUnchanged) return std::optional<std::string>();
    const auto base = bases_.find(delta.path);
    if (side == HostSide::kUnknown)
      return std::optional<std::string>("it was changed on the host while the command ran, or just before");
    const bool files = kind_of(delta.upper) == FileKind::kFile && kind_of(delta.lower) == FileKind::kFile;
    if (files && chosen.content && base != bases_.end() && !base->second.content.empty()) {
      const std::string then = BELLJAR_TRY(read_whole(transaction_.dir(), "bases/" + base->second.content, kMostMergeable));
      auto merged = merge_with(then, delta);
      if (merged) {
        chosen.merged = *std::move(merged);
        return std::optional<std::string>();
      }
      return std::optional<std::string>("the same lines were changed on the host meanwhile, in another way");
    }
    if (!delta.lower) return std::optional<std::string>("it was removed on the host meanwhile");
    const bool made = base != bases_.end() && base->second.was == Base::Was::kAbsent;
    return std::optional<std::string>(made ? "it was made on the host meanwhile" : "it was changed on the host meanwhile");
  }

  std::optional<std::string> merge_with(const std::string& then, const Delta& delta) const {
    const auto ours = read_whole(store_.layers(), layer_path(delta.layer, delta.path), kMostMergeable);
    const auto theirs = read_whole(store_.workspace(), delta.path, kMostMergeable);
    if (!ours || !theirs || is_binary(*ours) || is_binary(*theirs) || is_binary(then)) return std::nullopt;
    return merge(then, *ours, *theirs);
  }

  const Transaction& transaction_;
  const Store& store_;
  const CommitOptions& options_;
  const Objection& objection_;
  std::vector<Delta> deltas_;
  std::set<std::string> shown_;
  Bases bases_;
  Plan plan_;
};

// What was committed in part is what the host has; the layers show the same and diff() finds nothing there.
Result<void> renew_bases(const Transaction& transaction, const std::vector<std::string>& paths) {
  Bases bases = BELLJAR_TRY(load_bases(transaction.dir()));
  for (const std::string& path : paths) {
    const auto known = bases.find(path);
    Base base;
    base.was = Base::Was::kAbsent;
    const auto spot = find_spot(transaction.store().workspace(), path);
    if (const auto now = spot ? find_status(spot->parent.get(), spot->name) : std::nullopt) base = base_from(*now);
    base.layer = known != bases.end() ? known->second.layer : transaction.meta().chain.back();
    base.since = known != bases.end() ? known->second.since : 0;
    bases[path] = std::move(base);
  }
  return save_bases(transaction.dir(), bases);
}

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

Result<void> take_back(const Transaction& transaction, Journal& journal, const Record& record) {
  if (!journal.has("undo")) BELLJAR_CHECK(journal.mark("undo"));
  const auto undone = undo(transaction.store().workspace(), journal.stage(), record.ops);
  // What somebody wrote to in the meantime stays as it is, and is said; trying again would not change that.
  if (!undone && undone.error().code() != Code::kAborted) return undone;
  BELLJAR_CHECK(journal.end());
  return undone;
}

Result<void> finish(Transaction& transaction, Journal& journal, const Record& record) {
  if (auto applied = apply(transaction.store().workspace(), journal.stage(), record.ops); !applied) {
    BELLJAR_CHECK(take_back(transaction, journal, record));
    return applied;
  }
  BELLJAR_CHECK(journal.mark("done"));
  return retire(transaction, journal, record);
}

// Files of the top layer may be handed over: nobody else has it, and it goes with the transaction.
std::optional<LayerId> layer_to_give(const Transaction& transaction, const Journal& journal, bool whole) {
  if (!whole || !journal.stage_is_here()) return std::nullopt;
  return transaction.meta().chain.back();
}

Result<std::vector<Op>> stage_all(const Transaction& transaction, const Journal& journal, const std::vector<Chosen>& chosen,
                                  bool whole) {
  Stager stager(transaction.store(), journal.stage(), layer_to_give(transaction, journal, whole));
  for (const Chosen& one : chosen) BELLJAR_CHECK(stager.add(one));
  return stager.take();
}

Result<void> carry_out(Transaction& transaction, const std::vector<Chosen>& chosen, bool whole) {
  Journal journal = BELLJAR_TRY(Journal::begin(transaction));
  auto ops = stage_all(transaction, journal, chosen, whole);
  Record record;
  if (ops) {
    record.ops = *std::move(ops);
    record.whole = whole;
    for (const Chosen& one : chosen) record.paths.push_back(one.delta.path);
    if (auto written = journal.write(record)) return finish(transaction, journal, record);
    else ops = std::move(written).error();
  }
  Error failed = std::move(ops).error();
  BELLJAR_CHECK(journal.end());
  return failed;
}

Result<bool> recover_one(Transaction& transaction) {
  Journal journal = BELLJAR_TRY(Journal::open(transaction));
  if (!journal.has("journal")) {
    BELLJAR_CHECK(journal.end());
    return false;
  }
  const Record record = BELLJAR_TRY(journal.read());
  if (journal.has("done")) {
    BELLJAR_CHECK(retire(transaction, journal, record));
    return true;
  }
  if (journal.has("undo")) {
    BELLJAR_CHECK(take_back(transaction, journal, record));
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
  Plan plan = BELLJAR_TRY(Planner(transaction, options, objection).run());
  if (!plan.result.conflicts.empty() || !plan.result.refused.empty()) return std::move(plan.result);
  for (const Chosen& one : plan.chosen) {
    if (one.merged) plan.result.merged.push_back(one.delta.path);
  }
  BELLJAR_CHECK(carry_out(transaction, plan.chosen, options.paths.empty()));
  plan.result.applied = true;
  return std::move(plan.result);
}

Result<std::vector<Recovered>> recover(const Place& place) {
  std::vector<Recovered> all;
  for (const Info& info : BELLJAR_TRY(list(place))) {
    if (!info.interrupted) continue;
    Place one = place;
    one.name = info.name;
    Transaction transaction = BELLJAR_TRY(Transaction::open_interrupted(one));
    if (!transaction.interrupted()) continue;
    all.push_back({info.name, BELLJAR_TRY(recover_one(transaction))});
  }
  BELLJAR_CHECK(sweep(place));
  return all;
}

}  // namespace belljar::txn
