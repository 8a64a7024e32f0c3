// belljar recover
#include <memory>
#include <string>

#include "base/format.h"
#include "belljar/result.h"
#include "belljar/txn.h"
#include "cli/agents_txns.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/txn_flags.h"

namespace belljar::cli {
namespace {

Result<void> recover(const TxnFlags& flags) {
  const txn::Place place = BELLJAR_TRY(find_place(flags));
  const auto all = BELLJAR_TRY(txn::recover(place));
  for (const txn::Recovered& one : all)
    print_note(format("the commit of {} was {}", one.name, one.finished ? "finished" : "undone; the transaction is as before"));
  if (all.empty()) print_note("no commit was cut off");
  const LeftoverTransactions left = BELLJAR_TRY(drop_agents_empty(place));
  for (const std::string& name : left.dropped)
    print_note(format("the transaction {} of an agent's sandbox was empty and is dropped", name));
  for (const std::string& name : left.kept) print_note(kept_note(name));
  return {};
}

}  // namespace

void add_recover(const OptionParser& app, int& exit_code) {
  const OptionParser command =
      app.add_subcommand("recover", "Finish or undo commits that were cut off half-way. Drops what killed agents left empty, too");
  const auto flags = std::make_shared<TxnFlags>();
  add_txn_options(command, *flags);
  command.callback([flags, &exit_code] {
    if (const auto done = recover(*flags); !done) exit_code = print_error(done.error());
  });
}

}  // namespace belljar::cli
