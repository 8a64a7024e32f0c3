// A small Volcengine on this machine (fake_volcengine.py), and what it is to do wrong. Its commands run as whoever runs the test;
// with it they end.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "belljar/volcengine.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace belljar::test {

class FakeVolcengine {
 public:
  // Throws std::runtime_error when it does not start.
  FakeVolcengine();
  ~FakeVolcengine();
  FakeVolcengine(const FakeVolcengine&) = delete;
  FakeVolcengine& operator=(const FakeVolcengine&) = delete;

  static const char* secret() { return "c2VjcmV0LWtleS1vZi1hLXRlc3Q="; }
  static const char* gateway_key() { return "gw-0123456789abcdef"; }
  static const char* aio_key() { return "aio-0123456789abcdef"; }
  const std::string& url() const noexcept { return url_; }
  std::string aio_url() const { return url_ + "/aio"; }  // a container that runs, without a control plane
  VolcengineOptions options() const;                     // quick about what takes seconds elsewhere
  VolcengineOptions aio_options() const;
  std::map<std::string, std::string> environment() const;  // of the command line
  // "exec=cut", "control=500*2": see the script. Empty: nothing.
  void misbehave(const std::string& fault) const;
  std::string log() const;  // every request, a line of JSON each

 private:
  TempDir directory_;
  std::unique_ptr<Running> server_;
  std::string url_;
};

}  // namespace belljar::test
