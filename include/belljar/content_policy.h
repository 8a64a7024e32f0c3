// What a model gets to see of a tool's result, by where the content came from.
//
//   auto policy = BELLJAR_TRY(parse_content_policy(text, "content.toml"));
//   auto gate = BELLJAR_TRY(ContentGate::create(policy));
//   ContentShown shown = gate.apply({.source = TextSource::kNetwork, .name = url, .text = page});
//   // shown.text goes to the model (inside wrap_result's delimiters), page to the interface
//
// TOML, each key optional; an unknown key is an error:
//
//   reveal = "ask"             # who lets a model see what was described: ask (default: a person) | allow | refuse
//   [network]                  # or workspace, tool
//   action = "datamark"        # pass (default) | strip | datamark | describe | summarise | refuse
//   suspicious = "refuse"      # the same words; what the detector finds to hold an injection. Default: describe
//   max = "64KiB"              # beyond it the text is cut, and says so. Default: 256KiB; "0" is no limit
//
// strip takes out what no reader sees (invisible and direction characters, terminal escapes, HTML comments, elements that are
// hidden) and each line in which the detector finds a sign. datamark puts a mark into every gap between words, so that a model can
// tell data from instructions all along. describe puts a sentence of ours in the place of each passage that the detector finds, and
// as `action` in the place of everything: what was found, how much of it, where, and how it can be seen all the same. Each reduces
// what an injection does to a model and none ends it; what each costs: docs/design/guard.md.
//
// A file of the workspace that agents read their instructions from (AGENTS.md, SKILL.md) is instructions by nature: that it speaks
// to a model and orders things is no finding there, as in `belljar scan`.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "belljar/result.h"
#include "belljar/turn.h"

namespace belljar {

enum class ContentAction { kPass, kStrip, kDatamark, kDescribe, kSummarise, kRefuse };  // in the order of strictness
std::string_view to_string(ContentAction action) noexcept;

// Who lets a model see a passage that was described. kAsk: a person, each time, since text beside the passage may tell the model to
// ask for it. kRefuse: nobody; the descriptions do not say how.
enum class RevealRule { kAsk, kAllow, kRefuse };

struct ContentRule {
  ContentAction action = ContentAction::kPass;
  ContentAction suspicious = ContentAction::kDescribe;  // the stricter of the two counts
  std::size_t max_bytes = 256U << 10;                   // 0: no limit
  bool operator==(const ContentRule&) const = default;
};

struct ContentPolicy {
  ContentRule workspace, network, tool;
  std::string mark = "\xEE\x80\x80";  // of datamark: U+E000, which text does not hold; taken out of content that does
  RevealRule reveal = RevealRule::kAsk;
  bool operator==(const ContentPolicy&) const = default;
};

// Errors: kInvalidArgument with the place.
Result<ContentPolicy> parse_content_policy(std::string_view text, std::string_view file);

// Of the caller: a model without tools, say. An error refuses the content.
using Summarise = std::function<Result<std::string>(const Entered& what)>;

// A passage in whose place stands a description.
struct Withheld {
  TextSource source = TextSource::kTool;
  std::string name;  // of what it stood in
  std::string text;
  std::vector<std::string> signs;  // what was found in it, heaviest first, at most three; empty: the policy withholds everything
  std::size_t left_out = 0;        // bytes of it that were not kept
  bool operator==(const Withheld&) const = default;
};
// Keeps a passage and says, for the model, how it can be seen: one sentence without its full stop. Empty: not at all.
using Withhold = std::function<std::string(const Withheld& passage)>;

struct ContentShown {
  std::string text;  // for the model
  ContentAction done = ContentAction::kPass;
  std::size_t left_out = 0;        // bytes beyond the limit
  std::vector<std::string> notes;  // for people: what was taken out and why
  std::vector<Withheld> withheld;  // what was described
};

class ContentGate {
 public:
  // Errors: kInvalidArgument, `summarise` is asked for (by which source) and there is no hook; the mark is empty or a word.
  static Result<ContentGate> create(ContentPolicy policy, Summarise summarise = {});
  // What the user wrote passes as it is. Safe from any thread as far as the hooks are.
  ContentShown apply(const Entered& what, const Withhold& withhold = {}) const;
  // The same of a tool's result, whose own words (how a command ended) begin at `own_from`, ToolResult::own_from: they are looked
  // at by themselves, and do not go with a passage that stands in front of them.
  ContentShown apply_to_result(const Entered& what, std::size_t own_from, const Withhold& withhold = {}) const;
  // A passage for a model that was allowed to see it: as it was, datamarked. It is as untrusted as before.
  std::string reveal(const Withheld& passage) const;
  RevealRule reveal_rule() const noexcept { return policy_.reveal; }
  // Something may be described that somebody may let a model see.
  bool reveals() const noexcept;
  // What the system prompt should say when a source is datamarked or described; empty when none is.
  std::string system_prompt_rules() const;

 private:
  bool does(ContentAction action) const noexcept;

  ContentGate(ContentPolicy policy, Summarise summarise) : policy_(std::move(policy)), summarise_(std::move(summarise)) {}
  ContentPolicy policy_;
  Summarise summarise_;
};

// The passages of one session that a model may ask for, by ids that nobody can guess. The newest kMost are kept, kMostBytes of
// each. Safe from any thread.
class WithheldTexts {
 public:
  static constexpr std::size_t kMost = 64, kMostBytes = 64U << 10;

  // Returns its id: the same for the same passage of the same thing. Empty: this machine gives no random numbers.
  std::string keep(Withheld passage);
  // Errors: kNotFound, saying what to do.
  Result<Withheld> find(std::string_view id) const;

 private:
  mutable std::mutex mutex_;
  std::list<std::pair<std::string, Withheld>> kept_;  // guarded by mutex_; newest last
};

// The question whether a model may see a passage: why a person is asked, and the passage as evidence.
Judgement judge_reveal(const Withheld& passage);

}  // namespace belljar
