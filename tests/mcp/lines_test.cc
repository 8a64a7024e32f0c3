#include "mcp/lines.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace belljar::mcp {
namespace {

struct Read {
  std::vector<std::string> lines;
  int too_long = 0;
};

// The same bytes in pieces of each size: what comes out must not depend on them.
Read read_in_pieces(const std::string& bytes, std::size_t piece, std::size_t limit) {
  Read read;
  LineReader reader(limit, [&](std::string_view line) { read.lines.emplace_back(line); }, [&] { ++read.too_long; });
  for (std::size_t at = 0; at < bytes.size(); at += piece) reader.feed(std::string_view(bytes).substr(at, piece));
  reader.finish();
  return read;
}

TEST(LineReader, LinesDoNotDependOnThePieces) {
  const std::string bytes = "one\r\n\n\ntwo\n" + std::string(50, 'x') + "\nthree\n" + std::string(90, 'y');
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    const Read read = read_in_pieces(bytes, piece, 20);
    EXPECT_EQ(read.lines, (std::vector<std::string>{"one", "two", "three"})) << piece;
    EXPECT_EQ(read.too_long, 2) << piece;
  }
}

TEST(LineReader, ALineOfTheLimitIsOneAndWhatIsLeftAtTheEndToo) {
  EXPECT_EQ(read_in_pieces(std::string(20, 'x'), 7, 20).lines, std::vector<std::string>{std::string(20, 'x')});
  EXPECT_EQ(read_in_pieces(std::string(21, 'x'), 7, 20).too_long, 1);
}

}  // namespace
}  // namespace belljar::mcp
