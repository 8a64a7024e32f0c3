#include "mcp/task_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "support/temp_dir.h"

namespace belljar::mcp {
namespace {

TEST(TaskFile, WordsAreReadWhereTheyChange) {
  const test::TempDir place;
  const std::string path = place.path() + "/task";
  TaskFile file(path);
  EXPECT_EQ(file.changed().value(), std::nullopt) << "not there yet";
  (void)place.write("task", "Delete the folder archive");
  EXPECT_EQ(file.changed().value(), "Delete the folder archive");
  EXPECT_EQ(file.changed().value(), std::nullopt) << "the same";
  (void)place.write("new", "Run the tests");
  ASSERT_EQ(::rename((place.path() + "/new").c_str(), path.c_str()), 0);
  EXPECT_EQ(file.changed().value(), "Run the tests");
  (void)place.write("task", " \n");
  EXPECT_EQ(file.changed().value(), std::nullopt) << "no words";
  ASSERT_EQ(::unlink(path.c_str()), 0);
  EXPECT_EQ(file.changed().value(), std::nullopt);
  EXPECT_EQ(TaskFile("").changed().value(), std::nullopt);
}

TEST(TaskFile, WhatOthersMayWriteIsRefusedOnce) {
  const test::TempDir place;
  const std::string path = place.write("task", "Delete the folder archive");
  ASSERT_EQ(::chmod(path.c_str(), 0622), 0);
  TaskFile file(path);
  const auto loose = file.changed();
  ASSERT_FALSE(loose);
  EXPECT_NE(loose.error().reason().find("others than its owner"), std::string::npos);
  EXPECT_EQ(file.changed().value(), std::nullopt) << "it is told once";
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  EXPECT_EQ(TaskFile(path).changed().value(), "Delete the folder archive") << "the twin";
}

TEST(TaskFile, WhatIsNoFileOrTooLongIsRefused) {
  const test::TempDir place;
  ASSERT_EQ(::mkfifo((place.path() + "/pipe").c_str(), 0600), 0);
  EXPECT_FALSE(TaskFile(place.path() + "/pipe").changed()) << "and nobody waits for a writer";
  EXPECT_FALSE(TaskFile(place.path()).changed());
  EXPECT_FALSE(TaskFile(place.write("long", std::string(TaskFile::kLongest + 1, 'x'))).changed());
  EXPECT_TRUE(TaskFile(place.write("fits", std::string(TaskFile::kLongest, 'x'))).changed().value().has_value());
}

}  // namespace
}  // namespace belljar::mcp
