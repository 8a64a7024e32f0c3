// Any bytes as what entered, as the call and as the files that it runs: no crash, evidence inside the text, and without untrusted
// content nothing is asked. What a model is shown by default is never suspicious.
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/content_policy.h"
#include "belljar/turn.h"
#include "detect/detect.h"

using namespace belljar;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 3) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::size_t first = data[0] % (text.size() + 1);
  const std::string_view user = text.substr(0, first);
  const std::size_t second = data[1] % (text.size() - first + 1);
  const std::string_view content = text.substr(first, second), call = text.substr(first + second);
  const ProposedCall calls[] = {{.tool = "bash", .command = std::string(call)},
                                {.tool = std::string(call.substr(0, 12)), .arguments = std::string(call)},
                                {.tool = "send_email", .arguments = R"({"to":"a@b.example","body":"x"})"}};
  const WorkspaceFiles files{.read = [&](const std::string& path) -> std::optional<WorkspaceFile> {
                               if (path.size() > 8) return std::nullopt;
                               return WorkspaceFile{.text = std::string(call), .changed = path.size() % 2 == 0};
                             },
                             .changed_in = [](const std::string&) { return std::vector<std::string>{"a", "test_a.py"}; }};
  Turn turn({.workspace = "/w", .files = files});
  turn.entered({.source = TextSource::kUser, .text = std::string(user)});
  for (const ProposedCall& each : calls) {
    if (turn.judge(each).advice != Advice::kAllow) std::abort();
  }
  turn.entered({.source = TextSource::kNetwork, .name = "p", .text = std::string(content)});
  for (const ProposedCall& each : calls) {
    const Judgement judgement = turn.judge(each);
    for (const Evidence& evidence : judgement.evidence) {
      if (evidence.at > content.size() || evidence.quote.size() > 300) std::abort();
    }
  }
  const auto gate = ContentGate::create({.network = {.action = ContentAction::kStrip, .suspicious = ContentAction::kStrip}});
  if (!gate || gate->apply({.source = TextSource::kNetwork, .text = std::string(content)}).text.size() > content.size() * 70 + 70)
    std::abort();
  const auto usual = ContentGate::create({});
  const Entered page{.source = TextSource::kNetwork, .name = std::string(user), .text = std::string(content)};
  if (!usual || detect::scan(usual->apply(page).text).suspicious()) std::abort();
  (void)parse_content_policy(content, "f");
  return 0;
}
