// The passages that were withheld in one session, and the question whether a model may see one.
//
// They are kept in order of their last use, so that a page that makes many cannot push out one that is still
// being talked about without being read again itself.
#include <algorithm>
#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "base/random.h"
#include "belljar/content_policy.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "belljar/turn.h"
#include "guard/passages.h"

namespace belljar {

std::string WithheldTexts::keep(Withheld passage) {
  constexpr std::size_t kIdBytes = 8;
  if (passage.text.size() > kMostBytes) {
    const std::size_t kept = guard::cut_at(passage.text, kMostBytes);
    passage.left_out += passage.text.size() - kept;
    passage.text.resize(kept);
  }
  const std::lock_guard lock(mutex_);
  const auto same = std::ranges::find(kept_, passage, &std::pair<std::string, Withheld>::second);
  if (same != kept_.end()) {
    kept_.splice(kept_.end(), kept_, same);
    return same->first;
  }
  std::string id = random_hex(kIdBytes);
  if (id.empty()) return id;
  kept_.emplace_back(id, std::move(passage));
  if (kept_.size() > kMost) kept_.pop_front();
  return id;
}

Result<Withheld> WithheldTexts::find(std::string_view id) const {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(kept_, id, &std::pair<std::string, Withheld>::first);
  if (found != kept_.end()) return found->second;
  return Error(Code::kNotFound, format("no passage is withheld under the id {}", quoted(id.substr(0, 40))))
      .reason(format("an id holds for one session, and the newest {} are kept", kMost))
      .next("read the text again: its description has the id of now");
}

Judgement judge_reveal(const Withheld& passage) {
  constexpr std::size_t kMostQuotes = 3, kQuote = 300;
  std::string signs;
  for (const std::string& sign : passage.signs) signs += (signs.empty() ? "" : ", ") + sign;
  Judgement judgement{
      .advice = Advice::kAsk,
      .reason = format("it wants to see {} bytes that were withheld from it{}", passage.text.size() + passage.left_out,
                       signs.empty() ? "" : ", since they look like instructions planted in data: " + signs),
      .row = "reveal"};
  std::string_view rest = passage.text;
  for (std::size_t i = 0, at = 0; i < kMostQuotes && !rest.empty(); ++i) {
    const std::size_t size = std::max<std::size_t>(1, guard::cut_at(rest, kQuote));
    judgement.evidence.push_back({.text = "",
                                  .kind = "passage",
                                  .source = passage.source,
                                  .name = passage.name,
                                  .quote = std::string(rest.substr(0, size)),
                                  .layer = "text",
                                  .at = at});
    at += size;
    rest.remove_prefix(size);
  }
  return judgement;
}

}  // namespace belljar
