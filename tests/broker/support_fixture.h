// A directory that the body may write to, and host services in it.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <initializer_list>
#include <iterator>
#include <string>

#include "broker/support_inside.h"
#include "broker/support_sockets.h"
#include "support/as_user.h"
#include "support/identity.h"
#include "support/temp_dir.h"

namespace belljar::test {

class Inside : public testing::TestWithParam<Front> {
 protected:
  void SetUp() override {
    if (needs_root(GetParam())) BELLJAR_NEEDS(as_root());
    BELLJAR_NEEDS(user_namespaces());  // none under TSan, whose runtime adds a thread to every process
    if (is_root()) dir.give_to(user_uid(), user_gid());
  }
  Setting setting(bool brokered = true) const { return {.front = GetParam(), .brokered = brokered}; }

  // As the user's own service on the host would make it: file modes let the body in.
  UniqueFd host_service(const std::string& path, int type = SOCK_STREAM) const {
    UniqueFd server = type == SOCK_DGRAM ? bind_at(path, type) : listen_at(path, type);
    if (is_root() && chown(path.c_str(), user_uid(), user_gid()) != 0) ADD_FAILURE() << "chown";
    return server;
  }

  // `server` is non-blocking.
  static bool was_touched(const UniqueFd& server) {
    const UniqueFd accepted(accept4(server.get(), nullptr, nullptr, SOCK_CLOEXEC));
    return accepted.valid() || errno != EAGAIN;
  }

  TempDir dir;
};

inline std::string front_name(const testing::TestParamInfo<Front>& info) {
  return std::string(needs_root(info.param) ? "Root" : "User") + (has_namespaces(info.param) ? "" : "Plain");
}

// In the order of the list: the operands of + have none.
inline std::string answers(std::initializer_list<std::string> list) {
  std::string text;
  for (const std::string& each : list) text += text.empty() ? each : " " + each;
  return text;
}

inline long entries(const char* directory) {
  const std::filesystem::directory_iterator begin(directory);
  return std::distance(begin, std::filesystem::directory_iterator());
}

}  // namespace belljar::test
