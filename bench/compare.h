// A report of before, as `belljar bench --json FILE` left it: read, told beside the present one, and kept where
// this run measured nothing.
//
// Machines differ and so do days: a row that has a ratio against a peer measured in turns with it is compared by
// that ratio, all others by their medians. A change counts when it is more than a tenth, and each median lies
// outside what the middle eight of ten single measurements of the other run took (p10 to p90): those are as far
// apart on a busy machine as the medians of two runs may be. A ratio is as unsure as the less sure of its two rows.
#pragma once

#include <string>
#include <string_view>

#include "belljar/result.h"
#include "bench/rows.h"

namespace belljar::bench {

// `name`: of the file, for messages. Members that are not known are passed over, those that an older version did
// not write are as if not measured. Errors: kInvalidArgument, no JSON or not of ours.
Result<Report> parse_report(std::string_view text, const std::string& name);
// Also: kNotFound, with the errno: it cannot be read.
Result<Report> read_report(const std::string& path);

// What is slower or larger than then, what is faster or smaller, how much is as it was, and what only one of them
// has. A section of lines for people.
std::string to_comparison(const Report& now, const Report& then);

// `now`, and of `before` the rows of those groups of which `now` has none.
Report merged(const Report& before, Report now);

// What the circumstances of two runs must share, without the load of the moment.
std::string without_load(const std::string& where);

}  // namespace belljar::bench
