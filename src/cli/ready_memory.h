// Memory of a process that will have to be fast later.
#pragma once

namespace belljar::cli {

// Every page that this process has mapped is there afterwards, and its own to write to: no first touch has to wait for the kernel.
// After a fork each first write would (proc_pid_maps(5), MADV_POPULATE_WRITE in madvise(2), Linux 5.14). What cannot be had is
// left.
void make_memory_ready() noexcept;

}  // namespace belljar::cli
