// The common part of the commands about transactions: which transaction is meant, and how a change is shown.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "belljar/result.h"
#include "belljar/txn.h"
#include "cli/command_line.h"

namespace belljar::cli {

struct TxnFlags {
  std::vector<std::string> workspace;
  std::optional<std::string> name;
};

// --workspace and --txn-name. `flags` must outlive `command`.
void add_txn_options(const OptionParser& command, TxnFlags& flags);
// Without a name: `default`, or the only one there is. Errors: kNotFound, with the names there are.
Result<txn::Place> find_place(const TxnFlags& flags);

// "M path", "R old -> new": the letters of `git status --short`. Names are escaped.
std::string change_line(const txn::Change& change);
// One JSON object on one line. A name that is no UTF-8 comes with U+FFFD in it and, as `path_bytes`, in hexadecimal.
std::string change_json(const txn::Change& change);

// What a commit did or why it did nothing, on stderr.
void tell_commit(const txn::CommitResult& result);
// One JSON object, without a newline.
std::string commit_json(const txn::CommitResult& result);

void print_out(const std::string& text);

}  // namespace belljar::cli
