#include "base/read_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>

#include "base/unique_fd.h"
#include "base/write_all.h"

namespace belljar {
namespace {

UniqueFd file_with(const std::string& text) {
  UniqueFd file(::memfd_create("text", MFD_CLOEXEC));
  EXPECT_TRUE(file.valid() && write_all(file.get(), text) && ::lseek(file.get(), 0, SEEK_SET) == 0);
  return file;
}

TEST(ReadAtMost, ReadsAllWhereThereIsNoMore) {
  const std::string text(100'000, 'x');
  EXPECT_EQ(read_at_most(file_with(text).get(), SIZE_MAX), text);
  EXPECT_EQ(read_at_most(file_with(text).get(), text.size()), text);
  EXPECT_EQ(read_at_most(file_with("").get(), SIZE_MAX), "");
}

TEST(ReadAtMost, StopsAtTheLimitAndLeavesTheRest) {
  const std::string text = std::string(16384, 'a') + std::string(16384, 'b');
  const UniqueFd file = file_with(text);
  EXPECT_EQ(read_at_most(file.get(), 16385), text.substr(0, 16385));
  EXPECT_EQ(read_at_most(file.get(), SIZE_MAX), text.substr(16385));
  EXPECT_EQ(read_at_most(file_with(text).get(), 0), "");
}

TEST(ReadAtMost, GathersWhatComesInPieces) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd read(ends[0]);
  UniqueFd write(ends[1]);
  ASSERT_TRUE(write_all(write.get(), "one"));
  EXPECT_EQ(read_at_most(read.get(), 3), "one");
  ASSERT_TRUE(write_all(write.get(), "two"));
  write.reset();
  EXPECT_EQ(read_at_most(read.get(), SIZE_MAX), "two");
}

TEST(ReadAtMost, SaysWhyNothingCanBeRead) {
  const UniqueFd directory(::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  EXPECT_FALSE(read_at_most(directory.get(), SIZE_MAX));
  EXPECT_EQ(errno, EISDIR);
}

}  // namespace
}  // namespace belljar
