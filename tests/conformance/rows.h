// A fact about the Sandbox interface that holds for every backend, and what one comes to. The rows of file calls that are about
// paths and patterns are in file_rows_test.cc, those of calls that are over in in_time_rows_test.cc, the others in
// conformance_test.cc.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "belljar/sandbox.h"

namespace belljar {

struct Bench {
  std::shared_ptr<Sandbox> sandbox;
  std::string workspace;   // on the host; empty: nowhere
  std::string named;       // by this name, a symbolic link, it was given; empty: by its own
  bool elsewhere = false;  // a machine of its own: links inside lead nowhere but there
  bool text_only = false;  // names and words that are no UTF-8 are refused
  bool terminals = true;
  int at_once = 1000;  // commands
};

// What a row came to.
enum class Outcome { kSame, kRefused, kNotApplicable };

struct Row {
  const char* name;
  bool needs_processes;  // of a backend that executes nothing: not applicable
  std::function<Outcome(const Bench&)> check;
};

inline ExecResult run(const Bench& bench, const std::string& text, const ExecOptions& options = {}) {
  auto result = bench.sandbox->exec(text, options);
  if (!result) {
    ADD_FAILURE() << result.error().line();
    return {};
  }
  return *std::move(result);
}

template <class T>
void expect_escape(const Result<T>& result, const std::string& path) {
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Code::kInvalidArgument);
  EXPECT_EQ(result.error().what(), "path escapes workspace: " + path);
}

std::vector<Row> file_rows();
std::vector<Row> in_time_rows();

}  // namespace belljar
