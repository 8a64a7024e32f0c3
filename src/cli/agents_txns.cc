// Names of the transactions that sandboxes of a model get, and what is left of them after a server was
// killed.
//
// A name is the user's transaction, the sandbox's number and some random digits, so that two servers on one
// workspace do not meet. The form is also how they are recognised later: only names of this form are ever
// dropped by themselves, and of those only the ones that nobody uses and that hold no change. What holds work
// is kept and told.
#include "cli/agents_txns.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <string_view>

#include "base/ascii.h"
#include "base/encoding.h"
#include "base/format.h"
#include "base/random.h"
#include "belljar/error.h"
#include "txn/leftover.h"

namespace belljar::cli {
namespace {

constexpr std::size_t kLongestName = 64;  // of a transaction: check_name() in txn/store.cc
constexpr int kRandomBytes = 3;

bool is_agents(std::string_view name) {
  const std::size_t last = name.rfind('-');
  if (last == std::string_view::npos || name.size() - last - 1 != 2UL * kRandomBytes || !is_small_hex(name.substr(last + 1)))
    return false;
  const std::size_t before = name.rfind("-s", last - 1);
  return before != std::string_view::npos && before > 0 && is_number(name.substr(before + 2, last - before - 2));
}

}  // namespace

Result<std::string> agents_transaction_name(const txn::Place& place, unsigned number) {
  const std::vector<txn::Info> known = BELLJAR_TRY(txn::list(place));
  for (;;) {
    const std::string digits = random_hex(kRandomBytes);
    if (digits.empty()) return Error(Code::kUnavailable, "cannot name a transaction").sys(errno, "getrandom");
    const std::string end = format("-s{}-{}", number, digits);
    std::string name = place.name.substr(0, kLongestName - end.size()) + end;
    if (std::ranges::find(known, name, &txn::Info::name) == known.end()) return name;
  }
}

Result<LeftoverTransactions> drop_agents_empty(const txn::Place& place) {
  LeftoverTransactions left;
  for (const txn::Leftover& one : BELLJAR_TRY(txn::drop_empty(place, is_agents)))
    (one.dropped ? left.dropped : left.kept).push_back(one.name);
  return left;
}

std::string kept_note(const std::string& name) {
  return format("the transaction {0} is kept: `belljar diff --txn-name {0}` shows it, `commit` and `rollback` end it", name);
}

}  // namespace belljar::cli
