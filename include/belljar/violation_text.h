// Refused acts in words: for a model and for people. Pure; safe from any thread.
//
//   std::string note = to_model_text(result);     // "" when nothing was refused
//   if (!note.empty()) tool_output += "\n" + note;
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "belljar/exec_result.h"

namespace belljar {

struct ModelTextOptions {
  std::size_t max_lines = 8;     // kinds of acts; what more there is, is counted
  std::size_t max_bytes = 2400;  // of the whole block, never cut inside a line
  std::size_t max_name = 160;    // bytes of one path, host or program as they are shown
};

// A block of plain lines that goes into a model's context beside the command's output, or "" when nothing was refused.
//
// The same acts give the same text: no times, no pids, acts alike on one line with their number. Everything a command can choose
// (paths, programs, hosts) stands in double quotes, cut to max_name, in printable ASCII: other bytes, quotes, backslashes and
// the characters of markup (< > `) come out as \xNN. So no name can end its quotes, open a line, close a caller's tag or move a
// terminal's cursor. It can still hold words: the first line says that quoted text is data.
std::string to_model_text(const ExecResult& result, const ModelTextOptions& options = {});

// "write `/etc/hosts` by `sh`: EROFS; refused by filesystem.entries (user /home/u/.config/belljar/policy.toml:3)": one line for a
// person, escaped, names cut to 400 bytes.
std::string to_line(const Violation& violation);

// Records that differ only in time, sequence and pid joined into the first of them, counts added. In the order of the first ones.
std::vector<Violation> merge_alike(std::span<const Violation> violations);

// "EACCES" for 13, "errno 4095" for what has no name, "" for 0.
std::string errno_name(int errnum);

}  // namespace belljar
