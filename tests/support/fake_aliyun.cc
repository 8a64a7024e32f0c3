#include "support/fake_aliyun.h"

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "belljar/aliyun.h"
#include "support/built.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace belljar::test {

FakeAliyun::FakeAliyun() {
  const std::string script = std::string(kSourceDir) + "/tests/support/fake_aliyun.py";
  server_ = std::make_unique<Running>(std::vector<std::string>{"python3", "-B", script, directory_.path()},
                                      RunOptions{.timeout = std::chrono::minutes(15)});
  if (!server_->wait_for_output("\n")) throw std::runtime_error("the fake AgentBay does not start: " + server_->err());
  url_ = "http://127.0.0.1:" + server_->out().substr(0, server_->out().find('\n'));
}

FakeAliyun::~FakeAliyun() {
  server_->close_input();  // it ends its sessions first
  (void)server_->wait();
}

AliyunOptions FakeAliyun::options() const {
  AliyunOptions options;
  options.route = AliyunRoute::kAgentBay;
  options.api_key = key();
  options.endpoint = url_;
  return options;
}

AliyunOptions FakeAliyun::gateway() const {
  AliyunOptions options;
  options.route = AliyunRoute::kGateway;
  options.mcp_endpoint = url_ + "/mcp";
  options.access_key = access_key();
  options.secret_key = secret_key();
  return options;
}

void FakeAliyun::set(const std::string& lines) const {
  // At once: a request that comes meanwhile finds the old ones or the new ones.
  const std::string fresh = directory_.write("faults.new", lines);
  std::filesystem::rename(fresh, directory_ / "faults");
}

std::string FakeAliyun::log() const { return exists(directory_ / "log") ? read_file(directory_ / "log") : std::string(); }

std::size_t FakeAliyun::asked(const std::string& what) const {
  std::istringstream lines(log());
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line);) count += line.find(what) != std::string::npos ? 1U : 0U;
  return count;
}

}  // namespace belljar::test
