// belljar diff [--stat | --json | --patch]
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/format.h"
#include "belljar/result.h"
#include "belljar/txn.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/txn_flags.h"

namespace belljar::cli {
namespace {

struct GivenDiff {
  TxnFlags flags;
  bool stat = false, json = false, patch = false;
};

std::string stat_line(const txn::Change& change) {
  std::string line = change_line(change);
  line.pop_back();
  return line + format(" | {} -> {} bytes\n", change.before.size, change.after.size);
}

std::string summary(const std::vector<txn::Change>& changes) {
  std::size_t counts[4] = {};
  std::int64_t growth = 0;
  for (const txn::Change& change : changes) {
    ++counts[static_cast<std::size_t>(change.kind)];
    growth += static_cast<std::int64_t>(change.after.size) - static_cast<std::int64_t>(change.before.size);
  }
  return format("{} added, {} modified, {} deleted, {} renamed, {:+} bytes\n", counts[0], counts[1], counts[2], counts[3], growth);
}

Result<void> show(const GivenDiff& given) {
  const txn::Place place = BELLJAR_TRY(find_place(given.flags));
  if (given.patch) {
    const txn::Patch patch = BELLJAR_TRY(txn::patch(place));
    for (const std::string& left_out : patch.left_out) print_note("not in the patch: " + left_out);
    print_out(patch.text);
    return {};
  }
  const std::vector<txn::Change> changes = BELLJAR_TRY(txn::diff(place));
  std::string text;
  for (const txn::Change& change : changes)
    text += given.json ? change_json(change) : given.stat ? stat_line(change) : change_line(change);
  if (given.stat) text += summary(changes);
  print_out(text);
  return {};
}

}  // namespace

void add_diff(const OptionParser& app, int& exit_code) {
  const OptionParser command = app.add_subcommand("diff", "What a transaction would change in the workspace");
  const auto given = std::make_shared<GivenDiff>();
  add_txn_options(command, given->flags);
  const Option stat = command.add_flag("--stat", given->stat, "With sizes, and a line of totals");
  const Option json = command.add_flag("--json", given->json, "One JSON object a line").excludes(stat);
  command.add_flag("--patch", given->patch, "As text for `git apply`, binary files included").excludes(stat).excludes(json);
  command.callback([given, &exit_code] {
    if (const auto shown = show(*given); !shown) exit_code = print_error(shown.error());
  });
}

}  // namespace belljar::cli
