// Which transaction is meant, and how a change is shown, for all commands about transactions.
//
// Without a name it is `default`, or the only one there is. In a directory below a workspace there is none,
// but people stand there; so when nothing is found the directories above are asked, and the error names the
// one that has a transaction.
//
// Names of files can hold any bytes. For people they are escaped; in JSON, which must be UTF-8, such a name
// comes in hexadecimal as well.
#include "cli/txn_flags.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/encoding.h"
#include "base/format.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "belljar/state_dir.h"
#include "belljar/txn.h"
#include "cli/command_line.h"
#include "cli/errors.h"
#include "cli/load.h"

namespace belljar::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string_view name_of(txn::FileKind kind) {
  constexpr std::string_view kNames[] = {"none", "file", "directory", "symlink", "other"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view name_of(txn::ChangeKind kind) {
  constexpr std::string_view kNames[] = {"added", "modified", "deleted", "renamed"};
  return kNames[static_cast<std::size_t>(kind)];
}

void put_path(Json& object, const char* key, const std::string& path) {
  object[key] = path;
  if (!is_utf8(path)) object[format("{}_bytes", key)] = to_hex(path);
}

Json state_json(const txn::FileState& state) {
  if (state.kind == txn::FileKind::kNone) return nullptr;
  return {{"type", name_of(state.kind)}, {"mode", format("{:04o}", state.mode)}, {"size", state.size}};
}

std::string with_slash(const std::string& path, const txn::FileState& state) {
  return escaped(path.empty() ? "." : path) + (state.kind == txn::FileKind::kDirectory ? "/" : "");
}

// A directory without a transaction, below one that has: where people stand is not the workspace. What cannot be told is none.
Result<void> check_above(const txn::Place& place) {
  txn::Place above = place;
  while (above.workspace.size() > 1) {
    above.workspace.resize(std::max<std::size_t>(above.workspace.rfind('/'), 1));
    const auto all = txn::list(above);
    if (!all || all->empty()) continue;
    return Error(Code::kNotFound, format("cannot find a transaction of {}", belljar::quoted(place.workspace)))
        .reason(format("it has none; {} above it has one", belljar::quoted(above.workspace)))
        .next(format("give --workspace {}, or go there", belljar::quoted(above.workspace)));
  }
  return {};
}

}  // namespace

void add_txn_options(const OptionParser& command, TxnFlags& flags) {
  command.add_option("--workspace", flags.workspace, "The workspace of the transaction (default: the current directory)")
      .repeatable()
      .type_name("DIR");
  command.add_option("--txn-name", flags.name, "Which transaction (default: `default`, or the only one)").type_name("NAME");
}

Result<txn::Place> find_place(const TxnFlags& flags) {
  const char* home = std::getenv("HOME");  // NOLINT(concurrency-mt-unsafe): one thread
  txn::Place place;
  place.workspace = BELLJAR_TRY(find_workspace(flags.workspace, home == nullptr ? "" : home));
  place.state_dir = default_state_dir();
  const std::vector<txn::Info> all = BELLJAR_TRY(txn::list(place));
  if (all.empty()) BELLJAR_CHECK(check_above(place));
  if (flags.name) {
    place.name = *flags.name;
    return place;
  }
  bool has_default = false;
  for (const txn::Info& one : all) has_default = has_default || one.name == place.name;
  if (!has_default && all.size() == 1) place.name = all.front().name;
  return place;
}

std::string change_line(const txn::Change& change) {
  constexpr char kLetters[] = {'A', 'M', 'D', 'R'};
  const bool gone = change.kind == txn::ChangeKind::kDeleted;
  std::string line(1, kLetters[static_cast<std::size_t>(change.kind)]);
  if (change.kind == txn::ChangeKind::kRenamed) line += format(" {} ->", escaped(change.from));
  line += " " + with_slash(change.path, gone ? change.before : change.after);
  if (change.kind == txn::ChangeKind::kModified || change.kind == txn::ChangeKind::kRenamed) {
    if (change.before.kind != change.after.kind)
      line += format(" ({} -> {})", name_of(change.before.kind), name_of(change.after.kind));
    else if (change.before.mode != change.after.mode)
      line += format(" (mode {:04o} -> {:04o})", change.before.mode, change.after.mode);
    if (change.attributes) line += " (attributes)";
  }
  if (change.unread) line += " (its owner may not look into it)";
  return line + "\n";
}

namespace {

Json to_json(const txn::Change& change) {
  Json object;
  object["kind"] = name_of(change.kind);
  put_path(object, "path", change.path.empty() ? "." : change.path);
  if (change.kind == txn::ChangeKind::kRenamed) put_path(object, "from", change.from);
  object["before"] = state_json(change.before);
  object["after"] = state_json(change.after);
  object["content"] = change.content;
  object["attributes"] = change.attributes;
  if (change.unread) object["unread"] = true;
  return object;
}

Json to_json(const std::vector<txn::Refused>& refused) {
  Json list = Json::array();
  for (const txn::Refused& one : refused) {
    Json object;
    put_path(object, "path", one.path);
    object["reason"] = one.reason;
    list.push_back(std::move(object));
  }
  return list;
}

std::string text_of(const Json& object) { return object.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

std::string change_json(const txn::Change& change) { return text_of(to_json(change)) + "\n"; }

void tell_commit(const txn::CommitResult& result) {
  for (const txn::Refused& one : result.conflicts)
    print_note(format("conflict: {}: {}", belljar::quoted(one.path), escaped(one.reason)));
  for (const txn::Refused& one : result.refused)
    print_note(format("refused: {}: {}", belljar::quoted(one.path), escaped(one.reason)));
  for (const std::string& path : result.merged) print_note(format("merged with the host's changes: {}", belljar::quoted(path)));
  if (result.applied) print_note(format("committed {} change{}", result.changes.size(), result.changes.size() == 1 ? "" : "s"));
  else print_note("nothing was committed; `belljar commit PATH...` commits a part, `belljar diff --patch` shows what there is");
}

std::string commit_json(const txn::CommitResult& result) {
  Json object;
  object["applied"] = result.applied;
  object["changes"] = Json::array();
  for (const txn::Change& change : result.changes) object["changes"].push_back(to_json(change));
  object["merged"] = result.merged;
  object["conflicts"] = to_json(result.conflicts);
  object["refused"] = to_json(result.refused);
  return text_of(object);
}

void print_out(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

}  // namespace belljar::cli
