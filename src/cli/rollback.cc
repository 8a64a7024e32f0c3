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

struct RollbackFlags {
  TxnFlags txn;
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

Result<void> roll_back(const RollbackFlags& flags) {
  const txn::Place place = BELLJAR_TRY(find_place(flags.txn));
  const std::string later = flags.to.empty() ? "" : later_snapshots(place, flags.to);
  BELLJAR_CHECK(txn::rollback(place, flags.to));
  print_note(flags.to.empty() ? format("dropped the transaction {}", place.name)
                              : format("the transaction {} is as it was at {}", place.name, escaped(flags.to)));
  if (!later.empty()) print_note(format("the snapshots made since then went with it: {}", escaped(later)));
  // It is done; what follows only frees the disk.
  if (const auto swept = txn::sweep(place); !swept) print_error(swept.error());
  return {};
}

}  // namespace

void add_rollback(const OptionParser& app, int& exit_code) {
  const OptionParser command = app.add_subcommand("rollback", "Drop what a transaction changed");
  const auto flags = std::make_shared<RollbackFlags>();
  add_txn_options(command, flags->txn);
  command.add_option("--to", flags->to, "Only what changed since this snapshot, later snapshots with it").type_name("SNAPSHOT");
  command.callback([flags, &exit_code] {
    if (const auto done = roll_back(*flags); !done) exit_code = print_error(done.error());
  });
}

}  // namespace belljar::cli
