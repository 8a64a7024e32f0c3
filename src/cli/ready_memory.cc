#include "cli/ready_memory.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "kernel/small_file.h"

namespace belljar::cli {
namespace {

constexpr int kPopulateRead = 22, kPopulateWrite = 23;  // MADV_POPULATE_READ and _WRITE, which libc's headers are too old for

// "start-end perms ...": of one mapping.
void populate(std::string_view line) noexcept {
  std::uintptr_t start = 0, end = 0;
  const char* const last = line.data() + line.size();
  const auto [dash, bad_start] = std::from_chars(line.data(), last, start, 16);
  if (bad_start != std::errc() || dash == last) return;
  const auto [space, bad_end] = std::from_chars(dash + 1, last, end, 16);
  if (bad_end != std::errc() || last - space < 5 || line.ends_with("]") != (line.ends_with("[heap]") || line.ends_with("[stack]")))
    return;
  const bool readable = space[1] == 'r', writable = space[2] == 'w', is_private = space[4] == 'p';
  if (!readable || (writable && !is_private)) return;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): addresses as the kernel writes them
  ::madvise(reinterpret_cast<void*>(start), end - start, writable ? kPopulateWrite : kPopulateRead);
}

}  // namespace

void make_memory_ready() noexcept {
  const std::string maps = kernel::read_small_file(AT_FDCWD, "/proc/self/maps").value_or("");
  for (std::size_t at = 0; at < maps.size();) {
    const std::size_t end = std::min(maps.find('\n', at), maps.size());
    populate(std::string_view(maps).substr(at, end - at));
    at = end + 1;
  }
}

}  // namespace belljar::cli
