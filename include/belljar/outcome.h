// What came of a command in one word, and in the words that programs written against the documents expect in their logs.
#pragma once

#include <string>
#include <string_view>

#include "belljar/events.h"
#include "belljar/exec_result.h"
#include "belljar/result.h"

namespace belljar {

enum class Outcome {
  kSucceeded,        // exit code 0
  kCommandFailed,    // another exit code, or a signal
  kTimedOut,         // wall or idle time
  kResourceLimit,    // memory, processes, disk or output
  kExecutionFailed,  // it was not started, was cancelled, or the sandbox could not do its own work
};
std::string_view to_string(Outcome outcome) noexcept;
Outcome outcome_of(const Result<ExecResult>& result) noexcept;

enum class Language { kEnglish, kChinese };

// "command timed out", "resource limit", "execution failed: WHY", "command failed: STDERR"; 命令超时, 资源限制, 执行失败: …,
// 命令失败: …; empty for success. What a command wrote is escaped, and cut at 2000 bytes.
std::string outcome_text(const Result<ExecResult>& result, Language language = Language::kEnglish);

// "sandbox executed: Command=… Duration=… ExitCode=…", 沙箱执行: ….
std::string execution_text(const ExecutionEvent& event, Language language = Language::kEnglish);

}  // namespace belljar
