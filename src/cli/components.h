// Belljar's programs and the components of belljar-full.
//
// `belljar` is small and static, since every command pays for its start. What only some commands need (TLS, HTTP, a parser of
// shell, the tools of agents, keepers) is linked into one other program, belljar-full, which is installed in the same directory.
// Its first word names the component that is to run, as for a multi-call binary. `belljar` replaces itself by it with execve(2),
// before anything is opened (hand_over.cc). belljar-bench is a third program there.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "belljar/error.h"

namespace belljar::cli {

inline constexpr const char kFullProgram[] = "belljar-full";

enum class Component : unsigned char {
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

struct ComponentName {
  Component component;
  const char* name;         // the first word of belljar-full, if it is that one's
  bool is_backend = false;  // the component serves `run` with the backend of that name
};
inline constexpr std::array kComponents{
    ComponentName{Component::kTls, "tls"},
    ComponentName{Component::kKeep, "keep"},
    ComponentName{Component::kContainer, "container", true},
    ComponentName{Component::kE2b, "e2b", true},
    ComponentName{Component::kAliyun, "aliyun", true},
    ComponentName{Component::kVolcengine, "volcengine", true},
    ComponentName{Component::kMcp, "mcp"},
    ComponentName{Component::kAgent, "agent"},
    ComponentName{Component::kAudit, "audit"},
    ComponentName{Component::kGuard, "guard"},
    ComponentName{Component::kBench, "bench"},
};

// The commands of `belljar` that a component does, besides `run` and `policy import`.
struct ComponentCommand {
  std::string_view word;
  Component component;
  const char* help;
};
inline constexpr std::array kComponentCommands{
    ComponentCommand{"bench", Component::kBench, "Measure this machine, beside the peers that are installed"},
    ComponentCommand{"rules", Component::kGuard, "Judge shell commands by rules: allow, ask or forbid, part by part"},
    ComponentCommand{"audit", Component::kAudit, "Show, verify or export the audit trail of `run --audit FILE`"},
    ComponentCommand{"mcp", Component::kMcp, "Serve sandboxed tools to any agent that speaks MCP"},
    ComponentCommand{"agent", Component::kAgent, "Let a model work on a task, with tools in a sandbox"},
    ComponentCommand{"scan", Component::kGuard, "Look for instructions to a model in text that should be data"},
    ComponentCommand{"review", Component::kGuard, "Calls of an agent that wait for a person"},
};

const char* name_of(Component component) noexcept;
std::optional<Component> find_component(std::string_view name) noexcept;
// The component that serves `run` with this backend; none: `belljar` itself does.
std::optional<Component> component_of_backend(std::string_view name) noexcept;
// The path of a program in the directory of this one.
std::string path_of_sibling(std::string_view program);
// Replaces this process by the program that has `component`; none: by `belljar`. `argv`: from our command's word on. Returns only
// when that fails.
Error exec_component(std::optional<Component> component, char* const* argv);
// The error where the program is not installed; errno is the failed call's.
Error sibling_is_missing(const std::string& what, std::string_view program);

}  // namespace belljar::cli
