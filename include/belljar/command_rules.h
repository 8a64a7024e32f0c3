// Judges for with_command_rules and with_read_only (decorators.h), on parsed shell: each simple command of lists, pipelines,
// substitutions, `sh -c`, `env`, `xargs` … is judged, and the strictest decision wins. What cannot be parsed is not allowed.
//
// What a shell finds on its standard input is judged as well; what comes there later, over a pipe or a terminal, is to be asked
// about.
//
//   sandbox = with_command_rules(sandbox, BELLJAR_TRY(command_judge({.deny = {"git push", "npm publish"}})));
//
// Link belljar::guard (it holds a parser of bash). Rules guide: a program that is allowed starts others without a shell. Only the
// sandbox holds.
#pragma once

#include <functional>
#include <string_view>

#include "belljar/decorators.h"
#include "belljar/policy.h"
#include "belljar/result.h"

namespace belljar {

// Asked about commands that the rules neither allow nor forbid; true: let it run. From any thread.
using CommandPrompt = std::function<bool(const Command& command, std::string_view why)>;

// A non-empty `allow` forbids what it does not list; with an empty one all is allowed but what `deny` lists and what the built-in
// checks object to (removing a home, sudo, piping a download into a shell …). A prefix in `deny` also matches behind options of the
// program: `git push` is `git -C DIR push`, too. Without `prompt` what must be asked about is refused.
// Errors: kInvalidArgument, a rule that makes no sense.
Result<CommandJudge> command_judge(const Commands& commands, CommandPrompt prompt = {});

// Whether a command is known to only read: for with_read_only, and for CacheOptions::pure (where it must also answer alike each
// time, as `date` does not: name those yourself).
std::function<bool(const Command&)> reading_commands();

}  // namespace belljar
