// A small E2B on this machine (fake_e2b.py), and what it is to do wrong. Its commands run as whoever runs the test; with it they
// end.
#pragma once

#include <memory>
#include <string>

#include "belljar/e2b.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace belljar::test {

class FakeE2b {
 public:
  // Throws std::runtime_error when it does not start.
  FakeE2b();
  ~FakeE2b();
  FakeE2b(const FakeE2b&) = delete;
  FakeE2b& operator=(const FakeE2b&) = delete;

  static const char* key() { return "e2b_0123456789012345678901234567890123456789"; }
  const std::string& url() const noexcept { return url_; }
  E2bOptions options() const;
  // "stream=cut", "control=503*2": see the script. Empty: nothing.
  void misbehave(const std::string& fault) const;
  std::string log() const;  // every request, a line of JSON each
  // Homes of sandboxes are below it.
  const std::string& path() const noexcept { return directory_.path(); }

 private:
  TempDir directory_;
  std::unique_ptr<Running> server_;
  std::string url_;
};

}  // namespace belljar::test
