// Tools of a sandbox, called by whichever way leads there, and what `shell` says of a command.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "belljar/result.h"
#include "remote/aliyun/wire.h"
#include "remote/shell/machine.h"

namespace belljar::remote::aliyun {

// The size of a piece that its own clients send and read where an answer goes through the control plane.
inline constexpr std::size_t kPiece = std::size_t{48} << 10;
// The largest answer of a tool.
inline constexpr std::size_t kMostAnswer = 64U << 20;

// The answer of a tool: a text, mostly JSON.
struct Content {
  bool is_error = false;
  std::string text;
};

// `data` of CallMcpTool, or `result` of a direct call: {content: [{text | blob | data}], isError}. Errors: kDataLoss.
Result<Content> parse_content(const Json& data);
// The whole reply of a direct call: {data: {result: ...}}, the inner JSON as an object or as text. Errors: kDataLoss.
Result<Content> parse_direct(const std::string& body);
// {stdout, stderr, exit_code} of the tool `shell`, or the same (exit_code may be called errorCode) in what it calls an error.
// Errors: kDeadlineExceeded, kUnavailable: the tool could not run it; kDataLoss, nobody can say how it ended.
Result<shell::ScriptOutput> parse_script_output(const Content& content);

class Tools {
 public:
  virtual ~Tools() = default;
  // Exactly once: what may have begun is not sent again. Errors: as Machine::run.
  virtual Result<Content> call(const std::string& tool, const Json& arguments, std::chrono::milliseconds patience,
                               int cancel_fd) const = 0;
};

}  // namespace belljar::remote::aliyun
