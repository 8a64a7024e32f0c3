// Removes a directory with all that is in it. What is in it was written by a command that is not trusted: every step is relative to
// a directory descriptor, links are removed and never followed, other file systems below are left alone.
#pragma once

#include <functional>
#include <string>

#include "belljar/result.h"

namespace belljar {

// Errors: the first thing that could not be removed; the rest is removed all the same. An absent path is no error.
Result<void> remove_tree(const std::string& path);
// All that is in the open directory `parent`.
Result<void> remove_entries_at(int parent);
// What lies deeper than there are descriptors: it is moved to the top of the tree to be removed there, which gives it another path
// for that time, or left and reported.
enum class Deeper { kReport, kMove };
// The directory `name` of the open directory `parent`. Where `enough` says so, asked before each directory, no further one is
// begun: kCanceled, and the rest stays.
Result<void> remove_tree_at(int parent, const std::string& name, Deeper deeper = Deeper::kReport,
                            const std::function<bool()>& enough = {});

}  // namespace belljar
