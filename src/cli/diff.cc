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

struct DiffFlags {
  TxnFlags txn;
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

Result<void> show(const DiffFlags& flags) {
  const txn::Place place = BELLJAR_TRY(find_place(flags.txn));
  if (flags.patch) {
    const txn::Patch patch = BELLJAR_TRY(txn::patch(place));
    for (const std::string& left_out : patch.left_out) print_note("not in the patch: " + left_out);
    print_out(patch.text);
    return {};
  }
  const std::vector<txn::Change> changes = BELLJAR_TRY(txn::diff(place));
  std::string text;
  for (const txn::Change& change : changes)
    text += flags.json ? change_json(change) : flags.stat ? stat_line(change) : change_line(change);
  if (flags.stat) text += summary(changes);
  print_out(text);
  return {};
}

}  // namespace

void add_diff(const OptionParser& app, int& exit_code) {
  const OptionParser command = app.add_subcommand("diff", "What a transaction would change in the workspace");
  const auto flags = std::make_shared<DiffFlags>();
  add_txn_options(command, flags->txn);
  const Option stat = command.add_flag("--stat", flags->stat, "With sizes, and a line of totals");
  const Option json = command.add_flag("--json", flags->json, "One JSON object a line").excludes(stat);
  command.add_flag("--patch", flags->patch, "As text for `git apply`, binary files included").excludes(stat).excludes(json);
  command.callback([flags, &exit_code] {
    if (const auto shown = show(*flags); !shown) exit_code = print_error(shown.error());
  });
}

}  // namespace belljar::cli
