// The first and the last bytes of an output, addressed by offsets in the whole of it.
//
// The head is filled once. The tail is a string that grows to twice its size before it is cut, so that each
// byte is moved once on average. A reader that asks for the part that was dropped between the two gets the
// beginning of the tail and sees by the offset of the page that something is missing. Pages end at whole
// characters, since each of them becomes JSON.
#include "tools/spool.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "tools/text.h"

namespace belljar::tools {

void Spool::append(std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  total_ += bytes.size();
  lines_ += static_cast<std::uint64_t>(std::ranges::count(bytes, '\n'));
  const std::size_t first = std::min(bytes.size(), kHead - head_.size());
  head_.append(bytes.substr(0, first));
  bytes.remove_prefix(first);
  if (bytes.size() > kTail) bytes.remove_prefix(bytes.size() - kTail);
  tail_.append(bytes);
  // In large steps: each drop moves all that is kept.
  if (tail_.size() > 2 * kTail) tail_.erase(0, tail_.size() - kTail);
  tail_begin_ = total_ - tail_.size();
}

// A page ends at a whole character where more has come, so that the next begins with one.
Page Spool::read(std::uint64_t offset, std::size_t limit) const {
  const std::lock_guard lock(mutex_);
  limit = std::min(limit, head_.size() + tail_.size());
  Page page{.offset = std::min(offset, total_), .total = total_};
  const bool is_whole = tail_begin_ == head_.size();  // nothing dropped between the two
  if (page.offset >= head_.size() && page.offset < tail_begin_)
    page.offset = total_ - from_whole_character(tail_).size();  // cut anywhere
  const bool in_head = page.offset < head_.size();
  const std::string& source = in_head ? head_ : tail_;
  const auto from = static_cast<std::size_t>(page.offset - (in_head ? 0 : tail_begin_));
  std::string_view rest = std::string_view(source).substr(from);
  std::string joined;
  if (in_head && is_whole && rest.size() <= limit) {
    // Four more bytes than fit: where the last character ends.
    joined = rest;
    joined += std::string_view(tail_).substr(0, limit - rest.size() + 4);
    rest = joined;
  }
  page.bytes = rest.substr(0, whole_characters(rest, limit));
  page.next = page.offset + page.bytes.size();
  return page;
}

std::uint64_t Spool::total() const {
  const std::lock_guard lock(mutex_);
  return total_;
}

std::uint64_t Spool::lines() const {
  const std::lock_guard lock(mutex_);
  return lines_;
}

}  // namespace belljar::tools
