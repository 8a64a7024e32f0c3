// belljar scan --evaluate: how much of labelled texts the detector flags.
#pragma once

#include <string>

#include "belljar/result.h"
#include "detect/detect.h"

namespace belljar::cli {

// `folder`: *.jsonl, an object a line. "text" and "label" ("attack", or anything else for what is none); "family" or "kind", "part"
// ("seen" or "unseen" by who made the detector; each word gets a table of its own), "twin" (a clean text of the same words) and
// "file" (a name that says what kind of text it is) may be there, and other members are passed over.
// A table with Wilson intervals of 95 %; as JSON, one object for each row of it. What a family is found net of its twins has
// Newcombe's interval. Errors: kNotFound, no such folder or nothing in it; kInvalidArgument, the line that is no such object.
Result<std::string> evaluate(const std::string& folder, detect::Options options, bool json);

}  // namespace belljar::cli
