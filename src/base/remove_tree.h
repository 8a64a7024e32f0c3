// Removes a directory with all that is in it. Its contents were written by an untrusted command: every step is
// relative to a directory descriptor, links are removed and never followed, other file systems below are left alone.
#pragma once

#include <functional>
#include <string>

#include "belljar/result.h"

namespace belljar {

// Errors: the first thing that could not be removed; the rest is removed all the same. An absent path is no error.
Result<void> remove_tree(const std::string& path);
// All that is in the open directory `parent`.
Result<void> remove_entries_at(int parent);
// For directories deeper than there are descriptors: kMove moves them to the top of the tree and removes them
// there (they have another path for that time), kReport leaves them and reports an error.
enum class Deeper { kReport, kMove };
// The directory `name` of the open directory `parent`. Where `enough` says so, asked before each directory, no further one is
// begun: kCanceled, and the rest stays.
Result<void> remove_tree_at(int parent, const std::string& name, Deeper deeper = Deeper::kReport,
                            const std::function<bool()>& enough = {});

}  // namespace belljar
