// Looks for instructions to a model in text that should be data: tool results, files, pages. A heuristic with graded, named
// findings: it finds what is spelled like an instruction to a model, also when it is hidden or encoded. It cannot find an
// instruction that is phrased as ordinary content, and it decides nothing: who asks shows the findings, and provenance and sandbox
// limit what follows (docs/design/guard.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace belljar::detect {

struct Sign {
  std::string name;         // "override", "addresses-assistant", "tag-characters" ...
  int weight = 0;           // 1..100
  std::string layer;        // "text", "base64", "base64 > hexadecimal" ...
  std::uint32_t begin = 0;  // bytes of the text that was given
  std::uint32_t end = 0;
  std::string excerpt;  // what was read there, at most 120 bytes, normalised
  bool operator==(const Sign&) const = default;
};

struct Scan {
  std::vector<Sign> signs;  // by weight
  std::uint64_t work = 0;   // steps that it took: grows with the text, and no faster (work.h)
  int score = 0;            // of the strongest group of signs that stand together; 100 and more are cut
  bool suspicious() const noexcept { return score >= kSuspicious; }
  static constexpr int kSuspicious = 50;
};

// For whom a text is written. Files for agents (AGENTS.md, SKILL.md) are instructions by nature: that they address a model and
// order things is no sign there, only what is hidden, what overrides, conceals, sends secrets away or takes rights is.
enum class Reader { kAnybody, kAgent };
// By the name of a file that agents read their instructions from, with or without its directories.
bool is_for_agents(std::string_view path);

struct Options {
  Reader reader = Reader::kAnybody;
  bool model = true;  // false: rows of signs alone
};
// Any bytes. Time grows with the size; nested layers end at depth 3. Safe from any thread.
Scan scan(std::string_view text, const Options& options = {});

// A tool's result for a model: between delimiters with a nonce that content cannot know, the source and its trust named, the nonce
// cut out of the content should it stand there. `nonce`: 16 or more random letters and digits, new for each call; made by the
// caller, who has the clock and the randomness.
enum class Source { kUser, kWorkspace, kNetwork, kTool };
struct ToolResult {
  std::string_view tool;
  Source source = Source::kTool;
  std::string_view content;
};
std::string wrap_result(const ToolResult& result, std::string_view nonce);
// What the system prompt should say of such results, or of results that are shown as they came.
enum class Delimiters { kThere, kNone };
std::string system_prompt_rules(Delimiters delimiters = Delimiters::kThere);

}  // namespace belljar::detect
