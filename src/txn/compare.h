// Compares the names of layers and host, and makes changes of what differs.
#pragma once

#include <vector>

#include "belljar/result.h"
#include "belljar/txn.h"
#include "txn/walk.h"

namespace belljar::txn {

// Compares bytes and attributes, never times: a command can set those. nullopt: the same on both sides. What we may not read counts
// as different.
std::optional<Change> compare(const Store& store, const Delta& delta);
std::vector<Change> compare_all(const Store& store, const std::vector<Delta>& deltas);

// An added and a deleted file with the same bytes become one change. By content only, not by names; at most `kMostCandidates`
// comparisons for a file.
std::vector<Change> find_renames(const Store& store, const std::vector<Delta>& deltas, std::vector<Change> changes);

// A file of the transaction or of the host, for reading; -1 when it cannot be opened.
UniqueFd open_upper(const Store& store, const Delta& delta);
UniqueFd open_lower(const Store& store, const std::string& path);

}  // namespace belljar::txn
