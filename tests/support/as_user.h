// Acts as an ordinary user from a test that may run as root.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace belljar::test {

// Ids that no account of the machine has, without capabilities or groups. As an ordinary user: our own.
uid_t user_uid() noexcept;
gid_t user_gid() noexcept;

// The command that runs `argv` as that user; as an ordinary user, `argv` itself. Its HOME is `home` when given.
std::vector<std::string> as_user(std::vector<std::string> argv, const std::string& home = {});

}  // namespace belljar::test
