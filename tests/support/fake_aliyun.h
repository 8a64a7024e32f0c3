// A small AgentBay on this machine (fake_aliyun.py), and what it is to do otherwise. Its commands run as whoever runs the test;
// with it they end.
#pragma once

#include <memory>
#include <string>

#include "belljar/aliyun.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace belljar::test {

class FakeAliyun {
 public:
  // Throws std::runtime_error when it does not start.
  FakeAliyun();
  ~FakeAliyun();
  FakeAliyun(const FakeAliyun&) = delete;
  FakeAliyun& operator=(const FakeAliyun&) = delete;

  static const char* key() { return "akm-0123456789abcdef0123456789abcdef"; }
  static const char* access_key() { return "LTAI-0123456789"; }
  static const char* secret_key() { return "secret-0123456789abcdef"; }
  const std::string& url() const noexcept { return url_; }
  AliyunOptions options() const;  // of AgentBay
  AliyunOptions gateway() const;
  // "CreateMcpSession=503*2", "link=off": see the script. Empty: nothing.
  void set(const std::string& lines) const;
  std::string log() const;                           // every request, a line of JSON each
  std::size_t asked(const std::string& what) const;  // how many lines of the log hold it
  // Homes of sessions are below it.
  const std::string& path() const noexcept { return directory_.path(); }

 private:
  TempDir directory_;
  std::unique_ptr<Running> server_;
  std::string url_;
};

}  // namespace belljar::test
