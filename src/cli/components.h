// The other programs of ours, which lie beside this one: belljar-full, which does what `run` shall not pay for (TLS, HTTP, a parser
// of shell, the tools of agents) in parts of their own names, and belljar-bench.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "belljar/error.h"

namespace belljar::cli {

inline constexpr const char kFullProgram[] = "belljar-full";

enum class Part : unsigned char {
  kTls,   // everything, with TLS in it; its words are ours, the first included
  kKeep,  // keeps a sandbox for `create`
  kContainer,
  kE2b,
  kAliyun,
  kVolcengine,
  kMcp,
  kAgent,
  kAudit,
  kGuard,
  kBench,  // belljar-bench
};

struct PartName {
  Part part;
  const char* name;         // the first word of belljar-full, if it is that one's
  bool is_backend = false;  // the part serves `run` with the backend of that name
};
inline constexpr std::array kParts{
    PartName{Part::kTls, "tls"},       PartName{Part::kKeep, "keep"},           PartName{Part::kContainer, "container", true},
    PartName{Part::kE2b, "e2b", true}, PartName{Part::kAliyun, "aliyun", true}, PartName{Part::kVolcengine, "volcengine", true},
    PartName{Part::kMcp, "mcp"},       PartName{Part::kAgent, "agent"},         PartName{Part::kAudit, "audit"},
    PartName{Part::kGuard, "guard"},   PartName{Part::kBench, "bench"},
};

// The commands of `belljar` that a part does, beside `run` and `policy import`.
struct PartCommand {
  std::string_view word;
  Part part;
  const char* help;
};
inline constexpr std::array kPartCommands{
    PartCommand{"bench", Part::kBench, "Measure this machine, beside the peers that are installed"},
    PartCommand{"rules", Part::kGuard, "Judge shell commands by rules: allow, ask or forbid, part by part"},
    PartCommand{"audit", Part::kAudit, "Show, verify or export the audit trail of `run --audit FILE`"},
    PartCommand{"mcp", Part::kMcp, "Serve sandboxed tools to any agent that speaks MCP"},
    PartCommand{"agent", Part::kAgent, "Let a model work on a task, with tools in a sandbox"},
    PartCommand{"scan", Part::kGuard, "Look for instructions to a model in text that should be data"},
    PartCommand{"review", Part::kGuard, "Calls of an agent that wait for a person"},
};

const char* name_of(Part part) noexcept;
std::optional<Part> find_part(std::string_view name) noexcept;
// The part that serves `run` with this backend; none: `belljar` itself does.
std::optional<Part> part_of_backend(std::string_view name) noexcept;
// The path of a program beside this one.
std::string beside_us(std::string_view program);
// Replaces this process by what does `part`; none: by `belljar`. `argv`: from our command's word on. Returns only when that fails.
Error replace_by(std::optional<Part> part, char* const* argv);
// What to say where the program is not there, with errno of what failed.
Error not_beside_us(const std::string& what, std::string_view program);

}  // namespace belljar::cli
