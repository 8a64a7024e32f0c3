#include "kernel/account.h"

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "kernel/small_file.h"

namespace belljar::kernel {
namespace {

// "name:x:uid:gid:gecos:home:shell", passwd(5).
std::optional<Account> parse_account(std::string_view line, uid_t wanted) {
  std::string_view fields[6];
  for (std::string_view& field : fields) {
    const std::size_t colon = line.find(':');
    field = line.substr(0, colon);
    if (colon == std::string_view::npos) return std::nullopt;
    line.remove_prefix(colon + 1);
  }
  const auto number = [](std::string_view text) {
    unsigned value = 0;
    const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
    return end.ec == std::errc() && end.ptr == text.data() + text.size() ? std::optional(value) : std::nullopt;
  };
  const auto uid = number(fields[2]);
  const auto gid = number(fields[3]);
  if (uid != wanted || !gid) return std::nullopt;
  return Account{*gid, std::string(fields[5])};
}

}  // namespace

std::optional<Account> find_account(std::string_view passwd, uid_t uid) {
  for (std::size_t at = 0; at < passwd.size();) {
    const std::size_t end = std::min(passwd.find('\n', at), passwd.size());
    if (auto account = parse_account(passwd.substr(at, end - at), uid)) return account;
    at = end + 1;
  }
  return std::nullopt;
}

std::string home_of_caller() {
  const auto account = find_account(read_small_file(AT_FDCWD, "/etc/passwd").value_or(""), ::getuid());
  std::string home = account ? account->home : "";
  while (home.ends_with('/')) home.pop_back();
  return home.starts_with('/') ? home : std::string();
}

}  // namespace belljar::kernel
