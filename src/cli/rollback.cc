// belljar rollback [--to SNAPSHOT]
#include <algorithm>
#include <memory>
#include <string>

#include "base/format.h"
#include "belljar/result.h"
#include "belljar/txn.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/txn_flags.h"

namespace belljar::cli {
namespace {

struct GivenRollback {
  TxnFlags flags;
  std::string to;
};

// The snapshots that were made after `to`: they hold what is dropped with it. Oldest first, with commas; for a note, so nothing
// where they cannot be read.
std::string later_snapshots(const txn::Place& place, const std::string& to) {
  std::string later;
  const auto transactions = txn::list(place);
  if (!transactions) return later;
  for (const txn::Info& info : *transactions) {
    if (info.name != place.name) continue;
    const auto found = std::ranges::find(info.snapshots, to);
    for (auto name = found; name != info.snapshots.end(); ++name) {
      if (name != found) later += (later.empty() ? "" : ", ") + *name;
    }
  }
  return later;
}

Result<void> roll_back(const GivenRollback& given) {
  const txn::Place place = BELLJAR_TRY(find_place(given.flags));
  const std::string later = given.to.empty() ? "" : later_snapshots(place, given.to);
  BELLJAR_CHECK(txn::rollback(place, given.to));
  print_note(given.to.empty() ? format("dropped the transaction {}", place.name)
                              : format("the transaction {} is as it was at {}", place.name, escaped(given.to)));
  if (!later.empty()) print_note(format("the snapshots made since then went with it: {}", escaped(later)));
  // It is done; what follows only frees the disk.
  if (const auto swept = txn::sweep(place); !swept) print_error(swept.error());
  return {};
}

}  // namespace

void add_rollback(const OptionParser& app, int& exit_code) {
  const OptionParser command = app.add_subcommand("rollback", "Drop what a transaction changed");
  const auto given = std::make_shared<GivenRollback>();
  add_txn_options(command, given->flags);
  command.add_option("--to", given->to, "Only what changed since this snapshot, later snapshots with it").type_name("SNAPSHOT");
  command.callback([given, &exit_code] {
    if (const auto done = roll_back(*given); !done) exit_code = print_error(done.error());
  });
}

}  // namespace belljar::cli
