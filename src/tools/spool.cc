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

Page Spool::read(std::uint64_t offset, std::size_t limit) const {
  const std::lock_guard lock(mutex_);
  Page page{.offset = std::min(offset, total_), .total = total_};
  if (page.offset >= head_.size() && page.offset < tail_begin_) page.offset = tail_begin_;
  const bool in_head = page.offset < head_.size();
  const std::string& source = in_head ? head_ : tail_;
  const auto from = static_cast<std::size_t>(page.offset - (in_head ? 0 : tail_begin_));
  const std::string_view rest = std::string_view(source).substr(from);
  page.bytes = rest.size() <= limit ? rest : rest.substr(0, whole_characters(rest, limit));
  // Nothing dropped between the two: go on into the tail.
  if (in_head && page.bytes.size() == rest.size() && tail_begin_ == head_.size()) {
    const std::size_t left = limit - page.bytes.size();
    page.bytes += tail_.size() <= left ? tail_ : tail_.substr(0, whole_characters(tail_, left));
  }
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
