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

struct GivenFork {
  TxnFlags flags;
  std::string name;
};

Result<void> begin_fork(const GivenFork& given) {
  const txn::Place place = BELLJAR_TRY(find_place(given.flags));
  BELLJAR_CHECK(txn::make_fork(place, given.name));
  const std::string name = escaped(given.name);
  print_note(
      format("the transaction {0} begins where {1} is now: `belljar run --txn-name {0} -- PROGRAM` goes on in it, "
             "`belljar diff --txn-name {0}` shows it",
             name, place.name));
  return {};
}

}  // namespace

void add_fork(const OptionParser& app, int& exit_code) {
  const OptionParser command = app.add_subcommand("fork", "Begin another transaction that goes on from the state of this one");
  const auto given = std::make_shared<GivenFork>();
  add_txn_options(command, given->flags);
  command.add_option("NAME", given->name, "Its name").required().type_name("NAME");
  command.callback([given, &exit_code] {
    if (const auto done = begin_fork(*given); !done) exit_code = print_error(done.error());
  });
}

}  // namespace belljar::cli
