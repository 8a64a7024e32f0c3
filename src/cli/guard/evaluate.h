// belljar scan --evaluate: how much of labelled texts the detector flags.
#pragma once

#include <string>

#include "belljar/result.h"
#include "detect/detect.h"

namespace belljar::cli {

struct EvaluateOptions {
  detect::Options detect;
  std::string talk;  // a file, a sentence a line, that is put in front of attacks two at a time; empty: built-in sentences
  bool json = false;
};

// `folder`: *.jsonl right in it, an object a line. "text" and "label" ("attack", or anything else for what is none); "family" or
// "kind", "part" ("seen" or "unseen" by who made the detector; each word gets a table of its own), "twin" (a clean text of the same
// words) and "file" (a name that says what kind of text it is) may be there, and other members are passed over. Every other file
// below it is an ordinary text of the part "files", by the first directory on the way: a repository each. Passed over are those of
// more than 256 KiB or with a NUL byte, links and .git.
// A table with Wilson intervals of 95 %; as JSON, one object for each row of it. What a family is found net of its twins has
// Newcombe's interval. Each attack and its twin are measured again with two sentences about attacks in front, which excuse nothing.
// Errors: kNotFound, no such folder or nothing in it; kInvalidArgument, the line that is no such object, talk of one sentence.
Result<std::string> evaluate(const std::string& folder, const EvaluateOptions& options);

}  // namespace belljar::cli
