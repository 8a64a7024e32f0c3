#include "support/fake_e2b.h"

#include <chrono>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "belljar/e2b.h"
#include "support/built.h"

namespace belljar::test {

FakeE2b::FakeE2b() {
  const std::string script = std::string(kSourceDir) + "/tests/support/fake_e2b.py";
  server_ = std::make_unique<Running>(std::vector<std::string>{"python3", "-B", script, directory_.path()},
                                      RunOptions{.timeout = std::chrono::minutes(15)});
  if (!server_->wait_for_output("\n")) throw std::runtime_error("the fake E2B does not start: " + server_->err());
  url_ = "http://127.0.0.1:" + server_->out().substr(0, server_->out().find('\n'));
}

FakeE2b::~FakeE2b() {
  server_->close_input();  // it ends its sandboxes first
  (void)server_->wait();
}

E2bOptions FakeE2b::options() const {
  E2bOptions options;
  options.api_key = key();
  options.api_url = url_;
  options.sandbox_url = url_;
  return options;
}

void FakeE2b::misbehave(const std::string& fault) const {
  // At once: a request that comes meanwhile finds the old ones or the new ones.
  const std::string fresh = directory_.write("faults.new", fault);
  std::filesystem::rename(fresh, directory_ / "faults");
}

std::string FakeE2b::log() const { return exists(directory_ / "log") ? read_file(directory_ / "log") : std::string(); }

}  // namespace belljar::test
