// The journal of a commit: which files exist says how far it came (journal.h), and the order of writing makes
// that true after a power cut.
//
// Everything in the stage reaches the disk (syncfs) before the journal is renamed into place, and every
// rename of the apply step does before the mark `done` is. The stage must be on the workspace's mount, since
// rename(2) answers EXDEV between two mounts of one file system too; that is why mount ids are compared, too.
// Where it does not lie beside the journal, its path is written down before it is made: a recovery must find
// it.
#include "txn/journal.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/format.h"
#include "base/remove_tree.h"
#include "policy/protected.h"
#include "txn/files.h"

namespace belljar::txn {
namespace {

using Json = nlohmann::json;
constexpr std::uint64_t kMostJournal = 1U << 30;
// 2: steps that take what is new from a layer (Op::layer), which who knows only 1 would not find; trees are packed.
constexpr int kOldestVersion = 1, kVersion = 2;
constexpr std::string_view kElsewhere = policy::kCommitStage;

Json to_json(const Identity& identity) { return Json::array({identity.type, identity.ino, identity.size, identity.mtime}); }

Identity identity_from(const Json& json) { return {json.at(0), json.at(1), json.at(2), json.at(3)}; }

using Tree = std::map<std::string, Identity>;

template <class Number>
void pack(std::string& bytes, Number number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

template <class Number>
Number unpack(std::string_view& bytes) {
  Number number = 0;
  if (bytes.size() < sizeof number) throw std::exception();
  (void)bytes.copy(reinterpret_cast<char*>(&number), sizeof number);
  bytes.remove_prefix(sizeof number);
  return number;
}

// A directory may hold a hundred thousand names: as values of JSON they would be half of what a commit takes.
std::string pack(const Tree& tree) {
  std::string bytes;
  for (const auto& [path, identity] : tree) {
    pack(bytes, identity.type), pack(bytes, identity.ino), pack(bytes, identity.size), pack(bytes, identity.mtime);
    pack(bytes, static_cast<std::uint32_t>(path.size()));
    bytes += path;
  }
  return bytes;
}

Tree unpack_tree(std::string_view bytes) {
  Tree tree;
  while (!bytes.empty()) {
    Identity identity;
    identity.type = unpack<std::uint32_t>(bytes);
    identity.ino = unpack<std::uint64_t>(bytes);
    identity.size = unpack<std::uint64_t>(bytes);
    identity.mtime = unpack<std::int64_t>(bytes);
    const auto length = unpack<std::uint32_t>(bytes);
    if (bytes.size() < length) throw std::exception();
    tree.emplace_hint(tree.end(), bytes.substr(0, length), identity);
    bytes.remove_prefix(length);
  }
  return tree;
}

Tree tree_from(const Json& json) {
  if (json.is_string()) return unpack_tree(json.get_ref<const std::string&>());
  Tree tree;  // version 1
  for (const auto& [path, identity] : json.items()) tree.emplace(path, identity_from(identity));
  return tree;
}

Json to_json(const Op& op) {
  Json json = {{"kind", static_cast<int>(op.kind)}, {"path", op.path}, {"number", op.number}, {"staged", to_json(op.staged)}};
  if (op.layer != 0) json["layer"] = op.layer;
  if (op.before) json["before"] = to_json(*op.before);
  if (!op.tree.empty()) json["tree"] = pack(op.tree);
  if (!op.staged_tree.empty()) json["staged_tree"] = pack(op.staged_tree);
  json["mode"] = {op.old_mode, op.mode};
  if (!op.old_attributes.empty() || !op.attributes.empty()) json["attributes"] = {op.old_attributes, op.attributes};
  return json;
}

Op op_from(const Json& json) {
  Op op;
  op.kind = static_cast<Op::Kind>(json.at("kind").get<int>());
  op.path = json.at("path").get<std::string>();
  op.number = json.at("number");
  op.layer = json.value("layer", LayerId{0});
  op.staged = identity_from(json.at("staged"));
  if (json.contains("before")) op.before = identity_from(json.at("before"));
  if (json.contains("tree")) op.tree = tree_from(json.at("tree"));
  if (json.contains("staged_tree")) op.staged_tree = tree_from(json.at("staged_tree"));
  op.old_mode = json.at("mode").at(0);
  op.mode = json.at("mode").at(1);
  if (!json.contains("attributes")) return op;
  op.old_attributes = json.at("attributes").at(0).get<std::map<std::string, std::string>>();
  op.attributes = json.at("attributes").at(1).get<std::map<std::string, std::string>>();
  return op;
}

// rename(2) works between them: the mount counts, not only the file system.
bool same_mount(int one, int other) {
  struct statx left{}, right{};
  if (::statx(one, "", AT_EMPTY_PATH, STATX_MNT_ID, &left) < 0 || ::statx(other, "", AT_EMPTY_PATH, STATX_MNT_ID, &right) < 0)
    return false;
  if ((left.stx_mask & right.stx_mask & STATX_MNT_ID) == 0) return false;
  return left.stx_mnt_id == right.stx_mnt_id && left.stx_dev_major == right.stx_dev_major &&
         left.stx_dev_minor == right.stx_dev_minor;
}

std::string random_name() {
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != sizeof number) number = static_cast<std::uint64_t>(::getpid());
  return format("{}{:016x}", kElsewhere, number);
}

}  // namespace

std::string encode(const Record& record) {
  Json root = {
      {"version", kVersion}, {"whole", record.whole}, {"paths", record.paths}, {"ops", Json::array()}, {"closed", record.closed}};
  for (const Op& op : record.ops) root["ops"].push_back(to_json(op));
  std::string bytes;
  Json::to_cbor(root, bytes);
  return bytes;
}

Result<Record> decode_record(std::string_view bytes) {
  try {
    const Json root = Json::from_cbor(bytes);
    const int version = root.at("version");
    if (version < kOldestVersion || version > kVersion) throw std::exception();
    Record record;
    record.whole = root.at("whole");
    record.paths = root.at("paths").get<std::vector<std::string>>();
    if (root.contains("closed")) record.closed = root.at("closed").get<std::map<std::string, std::uint32_t>>();
    for (const Json& op : root.at("ops")) record.ops.push_back(op_from(op));
    return record;
  } catch (const std::exception&) {
    return Error(Code::kDataLoss, "cannot read the journal of a commit")
        .reason("the file is damaged, or of another version of belljar")
        .next("look at the workspace and at the transaction's `commit` directory below the state directory by hand");
  }
}

Result<Journal> Journal::begin(const Transaction& transaction) {
  Journal journal(transaction);
  const Store& store = transaction.store();
  if (::mkdirat(transaction.dir(), "commit", 0700) < 0)
    return call_failed(errno, "mkdirat", "begin a commit in", transaction.name());
  journal.dir_ = UniqueFd(::openat(transaction.dir(), "commit", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!journal.dir_.valid()) return call_failed(errno, "openat", "begin a commit in", transaction.name());
  int parent = journal.dir_.get();
  std::string name = "stage";
  if (!same_mount(journal.dir_.get(), store.workspace()) || !same_mount(store.layers(), store.workspace())) {
    parent = store.workspace();
    name = random_name();
    journal.stage_path_ = name;
    BELLJAR_CHECK(write_whole(journal.dir_.get(), "where", name, Durable::kYes));
  }
  if (::mkdirat(parent, name.c_str(), 0700) < 0) return call_failed(errno, "mkdirat", "prepare the commit in", name);
  journal.stage_ = UniqueFd(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!journal.stage_.valid()) return call_failed(errno, "openat", "prepare the commit in", name);
  return journal;
}

Result<Journal> Journal::open(const Transaction& transaction) {
  Journal journal(transaction);
  journal.dir_ = UniqueFd(::openat(transaction.dir(), "commit", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!journal.dir_.valid()) return call_failed(errno, "openat", "open the commit of", transaction.name());
  if (journal.has("where")) {
    journal.stage_path_ = BELLJAR_TRY(read_whole(journal.dir_.get(), "where", 4096));
    if (!journal.stage_path_.starts_with(kElsewhere) || journal.stage_path_.find('/') != std::string::npos)
      return Error(Code::kDataLoss, "cannot read where a commit was prepared").next("look at the workspace by hand");
  }
  const int parent = journal.stage_is_here() ? journal.dir_.get() : transaction.store().workspace();
  const std::string name = journal.stage_is_here() ? "stage" : journal.stage_path_;
  journal.stage_ = UniqueFd(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  return journal;
}

bool Journal::has(const std::string& name) const noexcept { return find_status(dir_.get(), name).has_value(); }

Result<void> Journal::write(const Record& record) {
  // Before the journal says that it can be finished, all that it needs is on the disk.
  if (::syncfs(stage_.get()) < 0) return call_failed(errno, "syncfs", "commit", transaction_.name());
  return write_whole(dir_.get(), "journal", encode(record), Durable::kYes);
}

Result<Record> Journal::read() const {
  const std::string bytes = BELLJAR_TRY(read_whole(dir_.get(), "journal", kMostJournal));
  return decode_record(bytes);
}

Result<void> Journal::mark(const std::string& name) {
  if (::syncfs(stage_.get()) < 0) return call_failed(errno, "syncfs", "commit", transaction_.name());
  return write_whole(dir_.get(), name, "", Durable::kYes);
}

Result<void> Journal::drop_stage() {
  stage_.reset();
  if (stage_is_here()) return {};
  return remove_tree(transaction_.store().workspace_path() + "/" + stage_path_);
}

Result<void> Journal::end() {
  BELLJAR_CHECK(drop_stage());
  return transaction_.store().move_to_trash(transaction_.dir(), "commit");
}

}  // namespace belljar::txn
