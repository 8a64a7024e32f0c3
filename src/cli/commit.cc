// belljar commit: a transaction's changes, or a part of them, into the workspace.
//
// Paths are seen from the caller's directory and have to lie in the workspace; they name changes, not files.
// With --interactive each change is a question on stderr and an answer on stdin. Directories are not asked
// about, because they follow from what is in them: one that was made comes along with its first file, and one
// that was removed goes when everything in it goes (add_emptied). The end of the input before the last answer
// is no answer, and nothing is committed then.
//
// How a commit is applied so that it happens wholly or not at all is in src/txn.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/format.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "belljar/txn.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/load.h"
#include "cli/policy_flags.h"
#include "cli/txn_flags.h"

namespace belljar::cli {
namespace {

struct CommitFlags {
  TxnFlags txn;
  std::vector<std::string> paths;
  bool all = false, interactive = false;
};

// A path as people give it: relative to where they are, or absolute; inside the workspace. By its text: it need not exist here.
Result<std::string> find_inside(const std::string& path, const std::string& workspace) {
  std::string full = path;
  if (!path.starts_with('/')) {
    char* const here = ::getcwd(nullptr, 0);
    full = here == nullptr ? path : std::string(here) + "/" + path;
    ::free(here);  // NOLINT: getcwd(3) allocated it
  }
  std::vector<std::string> parts;
  for (std::size_t at = 0; at < full.size();) {
    const std::size_t end = std::min(full.find('/', at), full.size());
    const std::string part = full.substr(at, end - at);
    if (part == ".." && !parts.empty()) parts.pop_back();
    else if (!part.empty() && part != "." && part != "..") parts.push_back(part);
    at = end + 1;
  }
  std::string normal;
  for (const std::string& part : parts) normal += "/" + part;
  if (normal == workspace) return std::string();
  if (normal.starts_with(workspace + "/")) return normal.substr(workspace.size() + 1);
  return Error(Code::kInvalidArgument, format("cannot commit {}", belljar::quoted(path)))
      .reason(format("it does not lie in the workspace {}", belljar::quoted(workspace)))
      .next("name a file or directory in it, or give --workspace DIR");
}

bool is_below(const std::string& path, const std::string& folder) { return path.starts_with(folder + "/"); }

bool has_changes_below(const std::vector<txn::Change>& changes, const std::string& folder) {
  return std::ranges::any_of(
      changes, [&](const txn::Change& change) { return is_below(change.path, folder) || is_below(change.from, folder); });
}

// A directory goes when all goes that is in it.
void add_emptied(const std::vector<txn::Change>& changes, std::vector<std::string>& chosen) {
  const auto is_chosen = [&](const std::string& path) { return std::ranges::find(chosen, path) != chosen.end(); };
  for (auto change = changes.rbegin(); change != changes.rend(); ++change) {
    if (change->kind != txn::ChangeKind::kDeleted || is_chosen(change->path)) continue;
    const bool all = std::ranges::all_of(changes, [&](const txn::Change& other) {
      return (!is_below(other.path, change->path) || is_chosen(other.path)) &&
             (!is_below(other.from, change->path) || is_chosen(other.from));
    });
    if (all && has_changes_below(changes, change->path)) chosen.push_back(change->path);
  }
}

// A line of stdin without its end; nothing: there is no whole line any more.
std::optional<std::string> read_answer() {
  std::string line;
  for (int c = std::getchar(); c != EOF; c = std::getchar()) {
    if (c == '\n') return line;
    line += static_cast<char>(c);
  }
  return std::nullopt;
}

enum class Answer { kYes, kNo, kQuit };

// Asks until the answer is one. The end of the input is none: whoever went away has not chosen.
Result<Answer> ask_about(const txn::Change& change) {
  std::string line = change_line(change);
  line.pop_back();
  for (;;) {
    std::fprintf(stderr, "%s  commit? [y/n/q] ", line.c_str());
    const auto answer = read_answer();
    if (!answer)
      return Error(Code::kAborted, "cannot commit what was chosen")
          .reason("the input ended before all questions were answered; nothing was committed")
          .next("answer `q` to leave out the rest, or name what you want: `belljar commit PATH...`");
    if (answer == "y" || answer == "yes") return Answer::kYes;
    if (answer == "n" || answer == "no") return Answer::kNo;
    if (answer == "q" || answer == "quit") return Answer::kQuit;
    print_note("y: commit it, n: leave it in the transaction, q: leave it and all that follow");
  }
}

// One question for each change but directories, which follow from what is in them; the answer is a line on stdin. `q` takes none of
// what is left.
Result<std::vector<std::string>> ask(const txn::Place& place) {
  std::vector<std::string> chosen;
  const std::vector<txn::Change> changes = BELLJAR_TRY(txn::diff(place));
  for (const txn::Change& change : changes) {
    if (has_changes_below(changes, change.path)) continue;
    const Answer answer = BELLJAR_TRY(ask_about(change));
    if (answer == Answer::kQuit) break;
    if (answer == Answer::kNo) continue;
    chosen.push_back(change.path);
    if (change.kind == txn::ChangeKind::kRenamed) chosen.push_back(change.from);
  }
  add_emptied(changes, chosen);
  return chosen;
}

// Where a transaction was named in the place of a path.
Error advise_name(Error error, const txn::Place& place, const std::vector<std::string>& paths) {
  const auto transactions = txn::list(place);
  if (!transactions) return error;
  for (const txn::Info& one : *transactions) {
    if (std::ranges::find(paths, one.name) != paths.end())
      return std::move(error).next(format("a transaction is named by an option: belljar commit --txn-name {}", one.name));
  }
  return error;
}

Result<int> commit(const CommitFlags& flags) {
  const txn::Place place = BELLJAR_TRY(find_place(flags.txn));
  PolicyFlags policy_flags;
  policy_flags.workspace = flags.txn.workspace;
  const LoadedPolicy loaded = BELLJAR_TRY(load_policy(policy_flags));
  txn::CommitOptions options;
  options.filesystem = loaded.effective.policy.filesystem;
  for (const std::string& path : flags.paths) {
    const std::string inside = BELLJAR_TRY(find_inside(path, place.workspace));
    if (inside.empty())
      return Error(Code::kInvalidArgument, "cannot commit the workspace itself as a part of it").next("use --all");
    options.paths.push_back(inside);
  }
  if (flags.interactive) {
    options.paths = BELLJAR_TRY(ask(place));
    if (options.paths.empty()) {
      print_note("nothing was chosen");
      return 0;
    }
  }
  auto committed = txn::commit(place, options);
  if (!committed && committed.error().code() == Code::kNotFound)
    return advise_name(std::move(committed.error()), place, flags.paths);
  const txn::CommitResult result = BELLJAR_TRY(std::move(committed));
  tell_commit(result);
  if (const auto swept = txn::sweep(place); !swept) print_error(swept.error());
  return result.applied ? 0 : 1;
}

}  // namespace

void add_commit(const OptionParser& app, int& exit_code) {
  const OptionParser command = app.add_subcommand("commit",
                                                  "Apply a transaction, or a part of it, to the workspace. Contents, modes and "
                                                  "attributes are applied; times alone are no change");
  const auto flags = std::make_shared<CommitFlags>();
  add_txn_options(command, flags->txn);
  const Option paths =
      command.add_option("PATH", flags->paths, "Only these files and directories; the rest stays in the transaction");
  const Option all = command.add_flag("--all", flags->all, "Everything, which ends the transaction (the default)").excludes(paths);
  command.add_flag("--interactive", flags->interactive, "Ask for each change").excludes(paths).excludes(all);
  command.callback([flags, &exit_code] {
    const auto done = commit(*flags);
    exit_code = done ? *done : print_error(done.error());
  });
}

}  // namespace belljar::cli
