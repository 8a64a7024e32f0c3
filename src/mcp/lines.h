// Bytes of a stream as lines, none longer than a limit. Pure.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace belljar::mcp {

class LineReader {
 public:
  // `too_long`: once for each line that is longer than `limit` bytes, with nothing of it; the rest of that line is passed over.
  LineReader(std::size_t limit, std::function<void(std::string_view line)> take, std::function<void()> too_long)
      : limit_(limit), take_(std::move(take)), too_long_(std::move(too_long)) {}

  // Calls back for each line that ends in `bytes`, without its end ("\n" or "\r\n"); empty lines are passed over.
  void feed(std::string_view bytes);
  // The stream has ended: what is left is a line, too.
  void finish();

 private:
  void end_line();

  const std::size_t limit_;
  const std::function<void(std::string_view)> take_;
  const std::function<void()> too_long_;
  std::string line_;
  bool passing_over_ = false;
};

}  // namespace belljar::mcp
