#include "mcp/lines.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace belljar::mcp {

void LineReader::feed(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t end = std::min(bytes.find('\n'), bytes.size());
    if (!passing_over_ && line_.size() + end > limit_) {
      passing_over_ = true;
      line_ = {};
      too_long_();
    }
    if (!passing_over_) line_.append(bytes.substr(0, end));
    if (end == bytes.size()) return;
    end_line();
    bytes.remove_prefix(end + 1);
  }
}

void LineReader::finish() { end_line(); }

void LineReader::end_line() {
  std::string line;
  line.swap(line_);
  if (std::exchange(passing_over_, false)) return;
  if (line.ends_with('\r')) line.pop_back();
  if (!line.empty()) take_(line);
}

}  // namespace belljar::mcp
