// belljar snapshot NAME
#include <memory>
#include <string>

#include "belljar/result.h"
#include "belljar/txn.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/txn_flags.h"

namespace belljar::cli {
namespace {

struct GivenSnapshot {
  TxnFlags flags;
  std::string name;
};

Result<void> take_snapshot(const GivenSnapshot& given) {
  const txn::Place place = BELLJAR_TRY(find_place(given.flags));
  return txn::snapshot(place, given.name);
}

}  // namespace

void add_snapshot(const OptionParser& app, int& exit_code) {
  const OptionParser command = app.add_subcommand("snapshot", "Keep the state of a transaction, for `belljar rollback --to NAME`");
  const auto given = std::make_shared<GivenSnapshot>();
  add_txn_options(command, given->flags);
  command.add_option("name", given->name, "Its name").required().type_name("NAME");
  command.callback([given, &exit_code] {
    if (const auto done = take_snapshot(*given); !done) exit_code = print_error(done.error());
  });
}

}  // namespace belljar::cli
