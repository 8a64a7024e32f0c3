// Bases: what the host had under each name when the command saw it.
//
// Overlayfs does not say what a changed file looked like before, so that is noted when the run ends, from the
// host's file as it is then, if that is provably what the command saw. The proof is ctime, which no ordinary
// program can set, unlike mtime: older than the start of the run, or older than overlayfs' copy of this very
// file. Directories are noted in any case: their times change with every name in them.
//
// A name without a base of its own lies below a directory that the transaction made, removed or replaced as a
// whole, and the nearest base above decides.
//
// The clock of the comparison is CLOCK_REALTIME_COARSE, the one that the kernel takes for ctime: a finer
// clock would be ahead of it by up to a tick, and an edit in that tick would look older than the run.
#include "txn/base.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/digest.h"
#include "base/encoding.h"
#include "base/format.h"
#include "base/unique_fd.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "belljar/txn.h"
#include "txn/compare.h"
#include "txn/files.h"
#include "txn/meta.h"
#include "txn/store.h"
#include "txn/walk.h"

namespace belljar::txn {
namespace {

using Json = nlohmann::json;
constexpr std::uint64_t kMostTable = 1U << 30;

Json to_json(const Base& base) {
  return Json::array({static_cast<int>(base.state), base.layer, base.since, base.mode, base.ino, base.size, base.mtime, base.ctime,
                      base.attributes, base.content, base.digest});
}

Base base_of(const Json& json) {
  Base base;
  base.state = static_cast<Base::State>(json.at(0).get<int>());
  base.layer = json.at(1);
  base.since = json.at(2);
  base.mode = json.at(3);
  base.ino = json.at(4);
  base.size = json.at(5);
  base.mtime = json.at(6);
  base.ctime = json.at(7);
  base.attributes = json.at(8).get<std::map<std::string, std::string>>();
  base.content = json.at(9).get<std::string>();
  base.digest = json.at(10).get<std::string>();
  return base;
}

bool same_file(const Base& base, const struct stat& now) {
  if (S_ISDIR(now.st_mode)) return false;  // its times change with every name in it
  return base.mode == now.st_mode && base.ino == now.st_ino && base.size == static_cast<std::uint64_t>(now.st_size) &&
         base.mtime == nanoseconds(now.st_mtim) && base.ctime == nanoseconds(now.st_ctim);
}

// When overlayfs copied the host's file into the layer; 0: it did not, or who knows. A file that was moved over the name, a
// whiteout and what was made anew where one was may all be younger than what the command saw last.
std::int64_t copied(const Store& store, const Delta& delta) {
  if (kind_of(delta.upper) != FileKind::kFile || kind_of(delta.lower) != FileKind::kFile) return 0;
  const UniqueFd copy = open_upper(store, delta), host = open_lower(store, delta.path);
  return copy.valid() && host.valid() && is_copy_of(copy.get(), host.get()) ? birth_time(copy.get()) : 0;
}

std::string digest_of(std::string_view bytes) { return to_hex(sha256(bytes)); }

// Of a file, a link or a device; empty: it cannot be read.
std::string digest_at(int root, const std::string& path, const struct stat& status) {
  if (S_ISLNK(status.st_mode)) {
    const auto spot = open_parent(root, path);
    return spot ? digest_of(read_link(spot->parent.get(), spot->name)) : std::string();
  }
  if (!S_ISREG(status.st_mode)) return digest_of(format("{}", status.st_rdev));
  const UniqueFd file(open_beneath(root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  Sha256 digest;
  std::array<char, 1U << 16> buffer;
  for (;;) {
    const ssize_t got = file.valid() ? ::read(file.get(), buffer.data(), buffer.size()) : -1;
    if (got < 0) return {};
    if (got == 0) return digest.take();
    digest.add({buffer.data(), static_cast<std::size_t>(got)});
  }
}

bool has_content(const Base& base, int root, const std::string& path, const struct stat& now) {
  if (base.state != Base::State::kKnown || (base.mode & S_IFMT) != (now.st_mode & S_IFMT)) return false;
  if (S_ISDIR(now.st_mode)) return true;
  if (base.digest.empty()) return false;
  if (S_ISREG(now.st_mode) && base.size != static_cast<std::uint64_t>(now.st_size)) return false;
  return base.digest == digest_at(root, path, now);
}

bool has_attributes(FileKind kind) { return kind == FileKind::kFile || kind == FileKind::kDirectory; }

Base base_from(const struct stat& status) {
  Base base;
  base.state = Base::State::kKnown;
  base.mode = status.st_mode;
  base.ino = status.st_ino;
  base.size = static_cast<std::uint64_t>(status.st_size);
  base.mtime = nanoseconds(status.st_mtim);
  base.ctime = nanoseconds(status.st_ctim);
  return base;
}

// By content, so that no name means two texts. Best effort: without a copy a change on both sides is a conflict and not a merge.
void keep_copy(int transaction_dir, Base& base, std::string_view text) {
  if (text.find('\0') != std::string_view::npos) return;
  ::mkdirat(transaction_dir, "bases", 0700);
  const UniqueFd folder(open_beneath(transaction_dir, "bases", O_RDONLY | O_DIRECTORY));
  if (folder.valid() && write_whole(folder.get(), base.digest, text)) base.content = base.digest;
}

// The base of the nearest directory above that has one.
const Base* base_above(const Bases& bases, std::string_view path) {
  while (!path.empty()) {
    path = parent_path(path);
    if (const auto found = bases.find(std::string(path)); found != bases.end()) return &found->second;
  }
  return nullptr;
}

// Nothing was below it.
bool was_no_directory(const Base& base) {
  return base.state == Base::State::kAbsent || (base.state == Base::State::kKnown && !S_ISDIR(base.mode));
}

class Observer {
 public:
  Observer(Transaction& transaction, Bases& bases) : transaction_(transaction), store_(transaction.store()), bases_(bases) {}

  void note(const Delta& delta) {
    const Meta& meta = transaction_.meta();
    if (bases_.contains(delta.path)) return;
    // What the host has made since below a directory of the transaction's, no command has seen.
    const Base* above = base_above(bases_, delta.path);
    const bool below_new = above != nullptr && was_no_directory(*above);
    Base base;
    if (!delta.lower || below_new) {
      base.state = Base::State::kAbsent;
    } else {
      const std::int64_t changed = nanoseconds(delta.lower->st_ctim);
      const bool before = changed < meta.pending_since || (delta.layer != 0 && changed < copied(store_, delta));
      if (before || S_ISDIR(delta.lower->st_mode)) base = remember(delta);
    }
    base.layer = below_new ? above->layer : delta.layer != 0 ? delta.layer : meta.chain.back();
    base.since = below_new ? above->since : meta.pending_since;
    bases_[delta.path] = std::move(base);
  }

 private:
  Base remember(const Delta& delta) {
    Base base = base_from(*delta.lower);
    const FileKind kind = kind_of(delta.lower);
    if (!has_attributes(kind)) return base;
    const UniqueFd file = open_lower(store_, delta.path);
    if (!file.valid()) return base;
    base.attributes = read_attributes(file.get());
    if (kind == FileKind::kFile && kind_of(delta.upper) == FileKind::kFile && base.size <= kMostMergeable)
      keep_content(delta.path, base);
    return base;
  }

  void keep_content(const std::string& path, Base& base) {
    const auto text = read_whole(store_.workspace(), path, kMostMergeable);
    if (!text) return;
    const auto spot = open_parent(store_.workspace(), path);
    const auto after = spot ? find_status(spot->parent.get(), spot->name) : std::nullopt;
    if (!after || !same_file(base, *after)) return;  // somebody wrote while we read
    base.digest = digest_of(*text);
    keep_copy(transaction_.dir(), base, *text);
  }

  Transaction& transaction_;
  const Store& store_;
  Bases& bases_;
};

// As the layers show it. kUnknown: it cannot be read.
Base base_of_layer(const Transaction& transaction, const Delta& delta) {
  const Store& store = transaction.store();
  const std::string path = layer_path(delta.layer, delta.path);
  Base base;
  base.mode = delta.upper->st_mode;
  base.size = static_cast<std::uint64_t>(delta.upper->st_size);
  const FileKind kind = kind_of(delta.upper);
  if (has_attributes(kind)) {
    const UniqueFd file = open_upper(store, delta);
    if (!file.valid()) return base;
    base.attributes = read_attributes(file.get());
  }
  if (kind != FileKind::kDirectory) {
    base.digest = digest_at(store.layers(), path, *delta.upper);
    if (base.digest.empty()) return base;
  }
  base.state = Base::State::kKnown;
  if (kind != FileKind::kFile || base.size > kMostMergeable) return base;
  if (const auto text = read_whole(store.layers(), path, kMostMergeable)) keep_copy(transaction.dir(), base, *text);
  return base;
}

bool is_settled(const Store& store, const Bases& bases, const Delta& delta) {
  if (delta.unread) return false;
  const auto found = bases.find(delta.path);
  if (found == bases.end()) {
    const Base* above = base_above(bases, delta.path);
    return !delta.upper && above != nullptr && was_no_directory(*above);
  }
  const Base& base = found->second;
  if (base.state == Base::State::kUnknown) return false;
  if (!delta.upper || base.state == Base::State::kAbsent) return !delta.upper && base.state == Base::State::kAbsent;
  if (base.mode != delta.upper->st_mode || !layer_has_content(store, base, delta)) return false;
  if (!has_attributes(kind_of(delta.upper))) return true;
  const UniqueFd file = open_upper(store, delta);
  return file.valid() && base.attributes == read_attributes(file.get());
}

}  // namespace

std::int64_t nanoseconds(const timespec& time) noexcept {
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

Result<Bases> load_bases(const Transaction& transaction) {
  Bases bases;
  auto table = read_replaced(transaction.dir(), "base", kMostTable);
  if (!table && table.error().code() == Code::kNotFound) return bases;
  const std::string bytes = BELLJAR_TRY(std::move(table));
  try {
    const Json root = Json::from_cbor(bytes);
    for (const auto& [path, base] : root.items()) bases.emplace(path, base_of(base));
    std::erase_if(bases, [&](const auto& one) { return !transaction.meta().holds(one.second.layer); });
  } catch (const std::exception&) {
    return Error(Code::kDataLoss, "cannot read what the host had before the transaction")
        .reason("the file is damaged, or of another version of belljar")
        .next("copy what you need out of `belljar diff --patch`, then `belljar rollback`");
  }
  return bases;
}

Result<void> save_bases(int transaction_dir, const Bases& bases) {
  Json root = Json::object();
  for (const auto& [path, base] : bases) root[path] = to_json(base);
  std::string bytes;
  Json::to_cbor(root, bytes);
  return replace_whole(transaction_dir, "base", bytes);
}

Result<void> copy_bases(int from_dir, int to_dir, const Bases& bases) {
  ::mkdirat(to_dir, "bases", 0700);
  for (const auto& [path, base] : bases) {
    if (base.content.empty()) continue;
    const std::string name = "bases/" + base.content;
    if (::linkat(from_dir, name.c_str(), to_dir, name.c_str(), 0) < 0 && errno != EEXIST)
      return call_failed(errno, "linkat", "copy", name);
  }
  return save_bases(to_dir, bases);
}

Result<void> observe(Transaction& transaction) {
  if (transaction.meta().pending_since == 0) return {};
  const std::vector<Delta> deltas = BELLJAR_TRY(walk(transaction.store(), transaction.meta().chain, Descend::kWhereTheHostHasOne));
  Bases bases = BELLJAR_TRY(load_bases(transaction));
  Observer observer(transaction, bases);
  for (const Delta& delta : deltas) observer.note(delta);
  BELLJAR_CHECK(save_bases(transaction.dir(), bases));
  // What we could not see is noted when it is open again, and then by the time when a command may have seen it first.
  if (std::ranges::any_of(deltas, &Delta::unread)) return {};
  Meta meta = transaction.meta();
  meta.pending_since = 0;
  return transaction.save(std::move(meta));
}

Result<void> note_ways(const Transaction& transaction, const std::vector<Delta>& deltas, const std::vector<std::string>& paths) {
  Bases bases = BELLJAR_TRY(load_bases(transaction));
  for (const Delta& delta : deltas) {
    if (bases.contains(delta.path) || kind_of(delta.lower) != FileKind::kDirectory) continue;
    const bool way =
        std::ranges::any_of(paths, [&](const std::string& path) { return path != delta.path && within(path, delta.path); });
    const Base* above = base_above(bases, delta.path);
    if (!way || above == nullptr || judge_host(transaction.store(), bases, delta) != HostSide::kUnchanged) continue;
    const UniqueFd directory = open_lower(transaction.store(), delta.path);
    if (!directory.valid()) continue;
    Base base = base_from(*delta.lower);
    base.attributes = read_attributes(directory.get());
    base.layer = above->layer;
    base.since = above->since;
    const auto after = find_status(directory.get(), "");
    if (after && nanoseconds(after->st_ctim) == base.ctime) bases[delta.path] = std::move(base);
  }
  return save_bases(transaction.dir(), bases);
}

Result<void> renew_bases(const Transaction& transaction, const std::vector<std::string>& paths) {
  const std::vector<Delta> deltas = BELLJAR_TRY(walk(transaction.store(), transaction.meta().chain));
  Bases bases = BELLJAR_TRY(load_bases(transaction));
  std::map<std::string_view, const Delta*> by_path;
  for (const Delta& delta : deltas) {
    by_path[delta.path] = &delta;
    // Written out before the directory above is there for both: what stays in the transaction is still new.
    const Base* above = base_above(bases, delta.path);
    if (above == nullptr || !was_no_directory(*above)) continue;
    Base base = *above;
    base.state = Base::State::kAbsent;
    bases.try_emplace(delta.path, std::move(base));
  }
  for (const std::string& path : paths) {
    const auto known = bases.find(path);
    const Base* place = known != bases.end() ? &known->second : base_above(bases, path);
    const auto delta = by_path.find(path);
    Base base;
    if (delta == by_path.end() || !delta->second->upper) base.state = Base::State::kAbsent;
    else base = base_of_layer(transaction, *delta->second);
    // The lowest layer that may hold it, so that a rollback to a snapshot does not forget what was committed.
    base.layer = place != nullptr ? place->layer : transaction.meta().chain.front();
    base.since = place != nullptr ? place->since : 0;
    bases[path] = std::move(base);
  }
  return save_bases(transaction.dir(), bases);
}

std::vector<bool> find_settled(const Store& store, const Bases& bases, const std::vector<Delta>& deltas) {
  std::vector<bool> settled(deltas.size(), false);
  std::map<std::string_view, std::size_t> by_path;
  std::optional<std::string_view> going;  // a directory that the transaction takes away: nothing of the host's can stay in it
  for (std::size_t i = 0; i < deltas.size(); ++i) {
    const Delta& delta = deltas[i];
    by_path[delta.path] = i;
    if (going && within(delta.path, *going)) continue;
    settled[i] = is_settled(store, bases, delta);
    const bool goes = kind_of(delta.lower) == FileKind::kDirectory && kind_of(delta.upper) != FileKind::kDirectory;
    if (goes && !settled[i]) going = delta.path;
  }
  // A directory that the host removed is wanted again by what is to be put into it.
  for (std::size_t i = deltas.size(); i-- > 0;) {
    if (settled[i] || !deltas[i].upper || deltas[i].path.empty()) continue;
    const auto above = by_path.find(parent_path(deltas[i].path));
    if (above != by_path.end() && kind_of(deltas[above->second].lower) != FileKind::kDirectory) settled[above->second] = false;
  }
  return settled;
}

std::vector<Delta> drop_settled(const Transaction& transaction, std::vector<Delta> deltas) {
  const auto settled = find_settled(transaction.store(), load_bases(transaction).value_or(Bases()), deltas);
  std::size_t at = 0;
  std::erase_if(deltas, [&](const Delta&) { return settled[at++]; });
  return deltas;
}

Result<std::vector<Delta>> walk_unsettled(const Transaction& transaction) {
  return drop_settled(transaction, BELLJAR_TRY(walk(transaction.store(), transaction.meta().chain)));
}

bool layer_has_content(const Store& store, const Base& base, const Delta& delta) {
  return delta.upper && has_content(base, store.layers(), layer_path(delta.layer, delta.path), *delta.upper);
}

bool host_has_content(const Store& store, const Base& base, const Delta& delta) {
  return delta.lower && has_content(base, store.workspace(), delta.path, *delta.lower);
}

HostSide judge_host(const Store& store, const Bases& bases, const Delta& delta) {
  auto found = bases.find(delta.path);
  if (found != bases.end()) {
    const Base& base = found->second;
    if (base.state == Base::State::kUnknown) return HostSide::kUnknown;
    if (base.state == Base::State::kAbsent) return delta.lower ? HostSide::kChanged : HostSide::kUnchanged;
    if (!delta.lower) return HostSide::kChanged;
    if (same_file(base, *delta.lower)) return HostSide::kUnchanged;
    // A link made to it, or bytes written back: nothing is lost by going on.
    if (base.mode != delta.lower->st_mode || !host_has_content(store, base, delta)) return HostSide::kChanged;
    if (!has_attributes(kind_of(delta.lower))) return HostSide::kUnchanged;
    const UniqueFd file = open_lower(store, delta.path);
    return file.valid() && base.attributes == read_attributes(file.get()) ? HostSide::kUnchanged : HostSide::kChanged;
  }
  // Below a directory that was new, removed or replaced as a whole.
  for (std::string_view up = delta.path; !up.empty();) {
    up = parent_path(up);
    found = bases.find(std::string(up));
    if (found == bases.end()) continue;
    if (found->second.state == Base::State::kUnknown) return HostSide::kUnknown;
    if (!delta.lower) return found->second.state == Base::State::kAbsent || delta.upper ? HostSide::kUnchanged : HostSide::kChanged;
    if (found->second.state == Base::State::kAbsent) return HostSide::kChanged;
    return nanoseconds(delta.lower->st_ctim) < found->second.since ? HostSide::kUnchanged : HostSide::kChanged;
  }
  return HostSide::kUnknown;
}

}  // namespace belljar::txn
