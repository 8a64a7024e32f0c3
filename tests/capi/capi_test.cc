// The C interface, on the mock backend; examples/keep_sandbox.c runs on the native one (tests/e2e/library_test.cc).
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "belljar/belljar.h"

namespace {

// Checks what an error says, and frees it.
std::string told(belljar_error* error) {
  std::string text = belljar_error_message(error);
  belljar_error_free(error);
  return text;
}

class CInterface : public testing::Test {
 protected:
  CInterface() {
    belljar_options options = BELLJAR_OPTIONS_INIT;
    options.backend = "mock";
    options.workspace = "/workspace";
    EXPECT_EQ(belljar_create(&options, &sandbox_, nullptr), BELLJAR_OK);
  }
  ~CInterface() override { belljar_destroy(sandbox_); }
  belljar_sandbox* sandbox_ = nullptr;
};

TEST_F(CInterface, BytesGoInAndOut) {
  const char bytes[] = {'a', '\0', '\xff'};
  ASSERT_EQ(belljar_write_file(sandbox_, "deep/file", bytes, sizeof bytes, nullptr), BELLJAR_OK);
  char* back = nullptr;
  std::size_t size = 0;
  ASSERT_EQ(belljar_read_file(sandbox_, "deep/file", &back, &size, nullptr), BELLJAR_OK);
  EXPECT_EQ(std::string(back, size), std::string(bytes, sizeof bytes));
  belljar_free(back);
}

TEST_F(CInterface, WhatACommandDidIsAResult) {
  belljar_result* result = nullptr;
  const char* const argv[] = {"no-such-program", nullptr};
  ASSERT_EQ(belljar_exec(sandbox_, argv, nullptr, &result, nullptr), BELLJAR_OK);
  ASSERT_NE(result, nullptr);
  std::size_t size = 7;
  EXPECT_STREQ(belljar_result_stderr(result, &size) + size, "");
  EXPECT_STREQ(belljar_result_refusals(result), "");
  EXPECT_GE(belljar_result_duration_us(result), 0);
  belljar_result_free(result);
}

TEST_F(CInterface, ErrorsAreCodesAndSentences) {
  belljar_error* error = nullptr;
  char* bytes = nullptr;
  EXPECT_EQ(belljar_read_file(sandbox_, "none", &bytes, nullptr, &error), BELLJAR_NOT_FOUND);
  EXPECT_EQ(belljar_error_code(error), BELLJAR_NOT_FOUND);
  EXPECT_NE(told(error).find("none"), std::string::npos);
  EXPECT_EQ(belljar_read_file(sandbox_, "../out", &bytes, nullptr, &error), BELLJAR_INVALID_ARGUMENT);
  EXPECT_NE(told(error).find("path escapes workspace"), std::string::npos);
  EXPECT_EQ(bytes, nullptr);
  belljar_exec_options options = BELLJAR_EXEC_OPTIONS_INIT;
  options.timeout_ms = -5;
  belljar_result* result = nullptr;
  EXPECT_EQ(belljar_shell(sandbox_, "true", &options, &result, &error), BELLJAR_INVALID_ARGUMENT);
  belljar_error_free(error);
  options = BELLJAR_EXEC_OPTIONS_INIT;
  const char* const env[] = {"=x", nullptr};
  options.env = env;
  EXPECT_EQ(belljar_shell(sandbox_, "true", &options, &result, &error), BELLJAR_INVALID_ARGUMENT);
  EXPECT_NE(told(error).find("NAME=VALUE"), std::string::npos);
}

TEST_F(CInterface, NullIsRefusedAndNeverFollowed) {
  belljar_result* result = nullptr;
  belljar_error* error = nullptr;
  EXPECT_EQ(belljar_exec(sandbox_, nullptr, nullptr, &result, &error), BELLJAR_INVALID_ARGUMENT);
  EXPECT_EQ(told(error), "argv is NULL");
  EXPECT_EQ(belljar_shell(nullptr, "true", nullptr, &result, nullptr), BELLJAR_INVALID_ARGUMENT);
  EXPECT_EQ(belljar_shell(sandbox_, "true", nullptr, nullptr, nullptr), BELLJAR_INVALID_ARGUMENT);
  EXPECT_EQ(belljar_write_file(sandbox_, nullptr, "", 0, nullptr), BELLJAR_INVALID_ARGUMENT);
  EXPECT_EQ(belljar_create(nullptr, nullptr, nullptr), BELLJAR_INVALID_ARGUMENT);
  EXPECT_EQ(belljar_result_exit_code(nullptr), 125);
  EXPECT_STREQ(belljar_result_stdout(nullptr, nullptr), "");
  EXPECT_NE(told(nullptr), "");
  belljar_destroy(nullptr);
  belljar_result_free(nullptr);
}

TEST(COptions, SaySizeAndPolicyAndAreRefusedOtherwise) {
  belljar_sandbox* sandbox = nullptr;
  belljar_error* error = nullptr;
  belljar_options options = BELLJAR_OPTIONS_INIT;
  options.backend = "mock";
  options.policy_toml = "mode = \"read-only\"\n[limits]\ntimeout = \"5s\"\n";
  EXPECT_EQ(belljar_create(&options, &sandbox, &error), BELLJAR_OK) << told(error);
  belljar_destroy(sandbox);
  options.policy_toml = "[limits]\ntimeuot = \"5s\"\n";
  EXPECT_EQ(belljar_create(&options, &sandbox, &error), BELLJAR_INVALID_ARGUMENT);
  EXPECT_EQ(sandbox, nullptr);
  EXPECT_NE(told(error).find("timeout"), std::string::npos) << "the nearest right key";
  options.policy_toml = nullptr;
  options.size = 0;
  EXPECT_EQ(belljar_create(&options, &sandbox, nullptr), BELLJAR_INVALID_ARGUMENT);
  // Of an earlier version, which knew no more than two fields.
  options.size = offsetof(belljar_options, policy_toml);
  options.policy_toml = "not to be looked at";
  options.backend = "mock";
  EXPECT_EQ(belljar_create(&options, &sandbox, nullptr), BELLJAR_OK);
  belljar_destroy(sandbox);
  options = BELLJAR_OPTIONS_INIT;
  options.backend = "no-such-backend";
  EXPECT_NE(belljar_create(&options, &sandbox, &error), BELLJAR_OK);
  EXPECT_NE(told(error), "");
}

}  // namespace
