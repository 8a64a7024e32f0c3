// belljar snapshot NAME
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

struct SnapshotFlags {
  TxnFlags txn;
  std::string name;
};

Result<void> take_snapshot(const SnapshotFlags& flags) {
  const txn::Place place = BELLJAR_TRY(find_place(flags.txn));
  BELLJAR_CHECK(txn::snapshot(place, flags.name));
  const std::string name = escaped(flags.name);
  print_note(format("kept the transaction {0} as it is now: `belljar rollback{1} --to {2}` goes back to it", place.name,
                    flags.txn.name ? " --txn-name " + escaped(place.name) : "", name));
  return {};
}

}  // namespace

void add_snapshot(const OptionParser& app, int& exit_code) {
  const OptionParser command = app.add_subcommand("snapshot", "Keep the state of a transaction, for `belljar rollback --to NAME`");
  const auto flags = std::make_shared<SnapshotFlags>();
  add_txn_options(command, flags->txn);
  command.add_option("NAME", flags->name, "Its name").required().type_name("NAME");
  command.callback([flags, &exit_code] {
    if (const auto done = take_snapshot(*flags); !done) exit_code = print_error(done.error());
  });
}

}  // namespace belljar::cli
