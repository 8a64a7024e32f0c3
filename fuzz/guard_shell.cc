// Any bytes as a shell text: no crash, no hang; spans lie inside the text, what is unread is never allowed, and a part more never
// loosens.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "guard/judge.h"

using namespace belljar::guard;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static Judge judge({});
  const Verdict verdict = judge.judge(text);
  if (!verdict.unread.empty() && (verdict.decision == Decision::kAllow || verdict.read_only)) std::abort();
  for (const CommandVerdict& command : verdict.commands) {
    if (command.command.span.begin > command.command.span.end || command.command.span.end > size) std::abort();
    if (command.decision > verdict.decision) std::abort();
  }
  if (to_json_text(verdict, text).empty() || to_text(verdict, text).empty()) std::abort();
  // A refused command in front is refused, whatever follows in a sub-shell of its own that could be read.
  if (verdict.unread.empty() && size < 4096 && judge.judge("sudo x\n" + std::string(text)).decision != Decision::kForbid)
    std::abort();
  return 0;
}
