// Sockets by name, and what came of a connect as text. A name that starts with NUL is an abstract one.
#pragma once

#include <sys/socket.h>

#include <string>

#include "base/unique_fd.h"

namespace belljar::test {

// Invalid (errno set) when the kernel refuses.
UniqueFd bind_at(const std::string& name, int type = SOCK_STREAM);
UniqueFd listen_at(const std::string& name, int type = SOCK_STREAM, int backlog = 128);
UniqueFd connected(const std::string& name, int type = SOCK_STREAM);
// 0 or -errno.
int connect_to(int socket, const std::string& name);
// "ok" or the errno's name.
std::string outcome(int status);
std::string connect_outcome(int type, const std::string& name);

// Connects in every way that matters, in a fresh directory; one line each: "case: outcome".
std::string connect_answers(const std::string& directory);

}  // namespace belljar::test
