// What a model gets to see of a tool's result, by where the content came from.
//
//   auto policy = BELLJAR_TRY(parse_content_policy(text, "content.toml"));
//   auto gate = BELLJAR_TRY(ContentGate::create(policy));
//   ContentShown shown = gate.apply({.source = TextSource::kNetwork, .name = url, .text = page});
//   // shown.text goes to the model (inside wrap_result's delimiters), page to the interface
//
// TOML, each key optional; an unknown key is an error:
//
//   [network]                  # or workspace, tool
//   action = "datamark"        # pass (default) | strip | datamark | summarise | refuse
//   suspicious = "refuse"      # the same words; what the detector finds to hold an injection. Default: as `action`
//   max = "64KiB"              # beyond it the text is cut, and says so. Default: 256KiB; "0" is no limit
//
// strip takes out what no reader sees (invisible and direction characters, terminal escapes, HTML comments, elements that are
// hidden) and each line in which the detector finds a sign. datamark puts a mark into every gap between words, so that a model can
// tell data from instructions all along. It reduces what an injection does to a model; it does not end it (docs/design/guard.md).
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/result.h"
#include "belljar/turn.h"

namespace belljar {

enum class ContentAction { kPass, kStrip, kDatamark, kSummarise, kRefuse };  // in the order of strictness
std::string_view to_string(ContentAction action) noexcept;

struct ContentRule {
  ContentAction action = ContentAction::kPass;
  ContentAction suspicious = ContentAction::kPass;  // the stricter of the two counts
  std::size_t max_bytes = 256U << 10;               // 0: no limit
  bool operator==(const ContentRule&) const = default;
};

struct ContentPolicy {
  ContentRule workspace, network, tool;
  std::string mark = "\xEE\x80\x80";  // of datamark: U+E000, which text does not hold; taken out of content that does
  bool operator==(const ContentPolicy&) const = default;
};

// Errors: kInvalidArgument with the place.
Result<ContentPolicy> parse_content_policy(std::string_view text, std::string_view file);

// Of the caller: a model without tools, say. An error refuses the content.
using Summarise = std::function<Result<std::string>(const Entered& what)>;

struct ContentShown {
  std::string text;  // for the model
  ContentAction done = ContentAction::kPass;
  std::size_t left_out = 0;        // bytes beyond the limit
  std::vector<std::string> notes;  // for people: what was taken out and why
};

class ContentGate {
 public:
  // Errors: kInvalidArgument, `summarise` is asked for (by which source) and there is no hook; the mark is empty or a word.
  static Result<ContentGate> create(ContentPolicy policy, Summarise summarise = {});
  // What the user wrote passes as it is. Safe from any thread as far as the hook is.
  ContentShown apply(const Entered& what) const;
  // What the system prompt should say when a source is datamarked; empty when none is.
  std::string system_prompt_rules() const;

 private:
  ContentGate(ContentPolicy policy, Summarise summarise) : policy_(std::move(policy)), summarise_(std::move(summarise)) {}
  ContentPolicy policy_;
  Summarise summarise_;
};

}  // namespace belljar
