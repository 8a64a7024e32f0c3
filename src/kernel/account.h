// Accounts of this machine, from /etc/passwd alone: getpwuid(3) would load NSS modules into the process, and a static program has
// none. Accounts of LDAP and its like are not found.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

namespace belljar::kernel {

struct Account {
  gid_t gid = 0;
  std::string home;
};

// The first account of `uid` in the text of passwd(5).
std::optional<Account> find_account(std::string_view passwd, uid_t uid);

// The home directory of who calls, whatever $HOME says; "" when there is none, or it is "/".
std::string home_of_caller();

}  // namespace belljar::kernel
