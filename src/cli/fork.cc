// belljar fork NAME
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

struct ForkFlags {
  TxnFlags txn;
  std::string name;
};

Result<void> begin_fork(const ForkFlags& flags) {
  const txn::Place place = BELLJAR_TRY(find_place(flags.txn));
  BELLJAR_CHECK(txn::make_fork(place, flags.name));
  const std::string name = escaped(flags.name);
  print_note(
      format("the transaction {0} begins where {1} is now: `belljar run --txn-name {0} -- PROGRAM` goes on in it, "
             "`belljar diff --txn-name {0}` shows it",
             name, place.name));
  return {};
}

}  // namespace

void add_fork(const OptionParser& app, int& exit_code) {
  const OptionParser command = app.add_subcommand("fork", "Begin another transaction that goes on from the state of this one");
  const auto flags = std::make_shared<ForkFlags>();
  add_txn_options(command, flags->txn);
  command.add_option("NAME", flags->name, "Its name").required().type_name("NAME");
  command.callback([flags, &exit_code] {
    if (const auto done = begin_fork(*flags); !done) exit_code = print_error(done.error());
  });
}

}  // namespace belljar::cli
