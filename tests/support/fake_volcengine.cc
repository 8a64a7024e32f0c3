#include "support/fake_volcengine.h"

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "belljar/volcengine.h"
#include "support/built.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace belljar::test {

FakeVolcengine::FakeVolcengine() {
  const std::string script = std::string(kSourceDir) + "/tests/support/fake_volcengine.py";
  server_ = std::make_unique<Running>(std::vector<std::string>{"python3", "-B", script, directory_.path()},
                                      RunOptions{.timeout = std::chrono::minutes(15)});
  if (!server_->wait_for_output("\n")) throw std::runtime_error("the fake Volcengine does not start: " + server_->err());
  url_ = "http://127.0.0.1:" + server_->out().substr(0, server_->out().find('\n'));
}

FakeVolcengine::~FakeVolcengine() {
  server_->close_input();  // it ends its sandboxes first
  (void)server_->wait();
}

VolcengineOptions FakeVolcengine::options() const {
  VolcengineOptions options;
  options.access_key_id = "AKLTEXAMPLE0123456789";
  options.secret_access_key = secret();
  options.region = "cn-beijing";
  options.function_id = "fn-test";
  options.gateway_authorization = std::string("Bearer ") + gateway_key();
  options.api_url = url_;
  options.ready_interval = std::chrono::milliseconds(20);
  options.ready_within = std::chrono::seconds(60);
  return options;
}

VolcengineOptions FakeVolcengine::aio_options() const {
  VolcengineOptions options;
  options.aio_url = aio_url();
  options.aio_api_key = aio_key();
  return options;
}

std::map<std::string, std::string> FakeVolcengine::environment() const {
  return {{"VOLC_ACCESS_KEY_ID", "AKLTEXAMPLE0123456789"},
          {"VOLC_SECRET_ACCESS_KEY", secret()},
          {"VEFAAS_REGION", "cn-beijing"},
          {"SANDBOX_APP_ID", "fn-test"},
          {"SANDBOX_AUTHORIZATION", std::string("Bearer ") + gateway_key()},
          {"VOLCENGINE_API_URL", url_}};
}

void FakeVolcengine::misbehave(const std::string& fault) const {
  // At once: a request that comes meanwhile finds the old ones or the new ones.
  const std::string fresh = directory_.write("faults.new", fault);
  std::filesystem::rename(fresh, directory_ / "faults");
}

std::string FakeVolcengine::log() const { return exists(directory_ / "log") ? read_file(directory_ / "log") : std::string(); }

}  // namespace belljar::test
