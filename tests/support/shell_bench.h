// The bench of the tests of remote/shell: a cloud of our own, a sandbox in it, and nothing that is left of them.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "remote/shell/sandbox.h"
#include "support/leftovers.h"
#include "support/local_shell.h"

namespace belljar::test {

class ShellBench : public testing::Test {
 protected:
  void SetUp() override {
    left_ = std::make_unique<Leftovers>();
    cloud_ = std::make_shared<LocalCloud>();
    config_.caller_env = {{"PATH", "/nowhere"}, {"TOLD", "named"}};
    config_.policy.limits.kill_grace = std::chrono::milliseconds(200);
  }
  void TearDown() override {
    cloud_.reset();
    EXPECT_EQ(left_->report(), "") << "of a sandbox that was ended";
  }

  Result<std::shared_ptr<CloudSandbox>> started(std::optional<CloudOnStop> on_stop = {}) {
    options_.on_stop = on_stop;
    auto made = remote::shell::ShellSandbox::make(cloud_, config_, options_);
    if (!made) return made.error();
    if (const auto begun = (*made)->start({}); !begun) return begun.error();
    return std::shared_ptr<CloudSandbox>(*std::move(made));
  }
  std::shared_ptr<CloudSandbox> create(std::optional<CloudOnStop> on_stop = {}) {
    auto sandbox = started(on_stop);
    EXPECT_TRUE(sandbox) << sandbox.error().line();
    return sandbox ? *sandbox : nullptr;
  }
  Error refusal() {
    auto sandbox = started();
    return sandbox ? Error(Code::kUnknown, "it was created") : sandbox.error();
  }

  std::shared_ptr<LocalCloud> cloud_;
  remote::shell::ShellOptions options_{.type = "ShellOptions", .sandbox_id = {}, .lifetime = {}, .on_stop = {}};
  SandboxConfig config_;
  std::unique_ptr<Leftovers> left_;
};

inline std::uint64_t size_below(const std::string& directory) {
  std::uint64_t size = 0;
  std::error_code ignored;
  for (auto entry = std::filesystem::recursive_directory_iterator(directory, ignored); entry != decltype(entry)();
       entry.increment(ignored)) {
    if (const auto own = entry->file_size(ignored); !ignored) size += own;
  }
  return size;
}

inline std::size_t count_below(const std::string& directory, std::string_view name) {
  std::size_t count = 0;
  std::error_code ignored;  // what goes meanwhile
  for (auto entry = std::filesystem::recursive_directory_iterator(directory, ignored); entry != decltype(entry)();
       entry.increment(ignored))
    count += entry->path().filename() == name ? 1 : 0;
  return count;
}

}  // namespace belljar::test
