#include "txn/base.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/format.h"
#include "txn/compare.h"
#include "txn/files.h"

namespace belljar::txn {
namespace {

using Json = nlohmann::json;
constexpr std::uint64_t kMostTable = 1U << 30;

Json to_json(const Base& base) {
  return Json::array({static_cast<int>(base.was), base.layer, base.since, base.mode, base.ino, base.size, base.mtime, base.ctime,
                      base.attributes, base.content});
}

Base base_of(const Json& json) {
  Base base;
  base.was = static_cast<Base::Was>(json.at(0).get<int>());
  base.layer = json.at(1);
  base.since = json.at(2);
  base.mode = json.at(3);
  base.ino = json.at(4);
  base.size = json.at(5);
  base.mtime = json.at(6);
  base.ctime = json.at(7);
  base.attributes = json.at(8).get<std::map<std::string, std::string>>();
  base.content = json.at(9).get<std::string>();
  return base;
}

bool same_file(const Base& base, const struct stat& now) {
  if (base.mode != now.st_mode) return false;
  if (S_ISDIR(now.st_mode)) return true;  // its times change with every name in it
  return base.ino == now.st_ino && base.size == static_cast<std::uint64_t>(now.st_size) && base.mtime == nanoseconds(now.st_mtim) &&
         base.ctime == nanoseconds(now.st_ctim);
}

std::int64_t born(const Store& store, const Delta& delta) {
  struct statx status{};
  const UniqueFd file(open_beneath(store.layers(), layer_path(delta.layer, delta.path), O_PATH | O_NOFOLLOW));
  if (!file.valid() || ::statx(file.get(), "", AT_EMPTY_PATH, STATX_BTIME, &status) < 0) return 0;
  if ((status.stx_mask & STATX_BTIME) == 0) return 0;
  return status.stx_btime.tv_sec * 1'000'000'000 + status.stx_btime.tv_nsec;
}

class Observer {
 public:
  Observer(Transaction& transaction, Bases& bases) : transaction_(transaction), store_(transaction.store()), bases_(bases) {}

  void note(const Delta& delta) {
    const Meta& meta = transaction_.meta();
    const auto known = bases_.find(delta.path);
    if (known != bases_.end() && meta.holds(known->second.layer)) return;
    Base base;
    if (!delta.lower) {
      base.was = Base::Was::kAbsent;
    } else {
      const std::int64_t changed = nanoseconds(delta.lower->st_ctim);
      const bool before = changed < meta.pending_since || (delta.layer != 0 && changed < born(store_, delta));
      if (before || S_ISDIR(delta.lower->st_mode)) base = remember(delta);
    }
    base.layer = delta.layer != 0 ? delta.layer : meta.chain.back();
    base.since = meta.pending_since;
    bases_[delta.path] = std::move(base);
  }

 private:
  Base remember(const Delta& delta) {
    Base base = base_from(*delta.lower);
    const FileKind kind = kind_of(delta.lower);
    if (kind != FileKind::kFile && kind != FileKind::kDirectory) return base;
    const UniqueFd file = open_lower(store_, delta.path);
    if (!file.valid()) return base;
    base.attributes = read_attributes(file.get());
    if (kind == FileKind::kFile && kind_of(delta.upper) == FileKind::kFile && base.size <= kMostMergeable)
      keep_content(delta.path, base);
    return base;
  }

  // Best effort: without it a change on both sides is a conflict and not a merge.
  void keep_content(const std::string& path, Base& base) {
    const auto text = read_whole(store_.workspace(), path, kMostMergeable);
    if (!text || text->find('\0') != std::string::npos) return;
    ::mkdirat(transaction_.dir(), "bases", 0700);
    const UniqueFd folder(open_beneath(transaction_.dir(), "bases", O_RDONLY | O_DIRECTORY));
    if (!folder.valid()) return;
    const std::string name = format("{}-{}", transaction_.meta().chain.back(), base.ino);
    if (!write_whole(folder.get(), name, *text)) return;
    const auto spot = find_spot(store_.workspace(), path);
    const auto after = spot ? find_status(spot->parent.get(), spot->name) : std::nullopt;
    if (after && same_file(base, *after)) base.content = name;  // nobody wrote while we read
  }

  Transaction& transaction_;
  const Store& store_;
  Bases& bases_;
};

bool content_is(const Store& store, int transaction_dir, const Base& base, const std::string& path) {
  if (base.content.empty()) return false;
  const auto now = read_whole(store.workspace(), path, kMostMergeable);
  const auto then = read_whole(transaction_dir, "bases/" + base.content, kMostMergeable);
  return now && then && *now == *then;
}

}  // namespace

std::int64_t nanoseconds(const timespec& time) noexcept {
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

Base base_from(const struct stat& status) {
  Base base;
  base.was = Base::Was::kKnown;
  base.mode = status.st_mode;
  base.ino = status.st_ino;
  base.size = static_cast<std::uint64_t>(status.st_size);
  base.mtime = nanoseconds(status.st_mtim);
  base.ctime = nanoseconds(status.st_ctim);
  return base;
}

Result<Bases> load_bases(int transaction_dir) {
  Bases bases;
  auto table = read_replaced(transaction_dir, "base", kMostTable);
  if (!table && table.error().code() == Code::kNotFound) return bases;
  const std::string bytes = BELLJAR_TRY(std::move(table));
  try {
    const Json root = Json::from_cbor(bytes);
    for (const auto& [path, base] : root.items()) bases.emplace(path, base_of(base));
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
  Bases bases = BELLJAR_TRY(load_bases(transaction.dir()));
  std::erase_if(bases, [&](const auto& one) { return !transaction.meta().holds(one.second.layer); });
  Observer observer(transaction, bases);
  for (const Delta& delta : deltas) observer.note(delta);
  BELLJAR_CHECK(save_bases(transaction.dir(), bases));
  Meta meta = transaction.meta();
  meta.pending_since = 0;
  return transaction.save(std::move(meta));
}

HostSide judge_host(const Store& store, int transaction_dir, const Bases& bases, const Delta& delta) {
  auto found = bases.find(delta.path);
  if (found != bases.end()) {
    const Base& base = found->second;
    if (base.was == Base::Was::kUnknown) return HostSide::kUnknown;
    if (base.was == Base::Was::kAbsent) return delta.lower ? HostSide::kChanged : HostSide::kUnchanged;
    if (!delta.lower) return HostSide::kChanged;
    if (same_file(base, *delta.lower)) return HostSide::kUnchanged;
    // A link made to it, or bytes written back: nothing is lost by going on.
    const bool same = base.mode == delta.lower->st_mode && content_is(store, transaction_dir, base, delta.path);
    return same ? HostSide::kUnchanged : HostSide::kChanged;
  }
  // Below a directory that was new, removed or replaced as a whole.
  for (std::string_view up = delta.path; !up.empty();) {
    up = parent_path(up);
    found = bases.find(std::string(up));
    if (found == bases.end()) continue;
    if (found->second.was == Base::Was::kUnknown) return HostSide::kUnknown;
    if (!delta.lower) return found->second.was == Base::Was::kAbsent || delta.upper ? HostSide::kUnchanged : HostSide::kChanged;
    if (found->second.was == Base::Was::kAbsent) return HostSide::kChanged;
    return nanoseconds(delta.lower->st_ctim) < found->second.since ? HostSide::kUnchanged : HostSide::kChanged;
  }
  return HostSide::kUnknown;
}

}  // namespace belljar::txn
