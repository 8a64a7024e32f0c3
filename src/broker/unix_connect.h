// connect(2) of an AF_UNIX socket to an inode instead of a name.
#pragma once

namespace belljar::broker {

// Connects `socket` to the socket inode of the O_PATH descriptor `file`; 0 or -errno. The name is our own /proc/self/fd/N, whose
// link leads to exactly that inode (proc_pid_fd(5)); nothing is looked up by a name the sandbox can move.
int connect_to_file(int socket, int file) noexcept;

}  // namespace belljar::broker
