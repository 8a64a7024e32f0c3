// A commit under way, on disk: txns/NAME/commit/
//
//   where     path of the stage when it does not lie here (another mount than the workspace); written before the stage is made
//   stage/    what will be put (stage.h), later what was there
//   journal   the steps. From the moment it is there the commit will be finished; before, it never happened
//   undo      the commit could not be finished and is taken back
//   done      everything is in place; what remains is to tidy up
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "belljar/result.h"
#include "txn/stage.h"
#include "txn/store.h"

namespace belljar::txn {

struct Record {
  std::vector<Op> ops;
  bool whole = false;                           // everything: the transaction ends
  std::vector<std::string> paths;               // else: names of which the base is what the layers show
  std::map<std::string, std::uint32_t> closed;  // apply.h
  bool operator==(const Record&) const = default;
};
std::string encode(const Record& record);
Result<Record> decode_record(std::string_view bytes);

class Journal {
 public:
  // Errors: kFailedPrecondition, one exists.
  static Result<Journal> begin(const Transaction& transaction);
  static Result<Journal> open(const Transaction& transaction);

  // On the workspace's mount. Made by begin(); open() finds it, or nothing when it is gone or was not made yet.
  int stage() const noexcept { return stage_.get(); }
  bool stage_is_here() const noexcept { return stage_path_.empty(); }

  bool has(const std::string& name) const noexcept;  // "journal", "undo", "done"
  Result<void> write(const Record& record);          // durable, after everything in the stage is
  Result<Record> read() const;
  Result<void> mark(const std::string& name);  // durable
  // The stage, when it lies in the workspace.
  Result<void> drop_stage();
  // Stage and journal out of the way.
  Result<void> end();

 private:
  Journal(const Transaction& transaction) : transaction_(transaction) {}
  const Transaction& transaction_;
  UniqueFd dir_, stage_;
  std::string stage_path_;  // elsewhere
};

}  // namespace belljar::txn
