// A pid 1 that stays gives back what it inherited.
//
// It is a copy of the program that made it: heap, stacks, and whatever secrets lie in them. Kept, that costs page tables, and a
// copy of each page that the program writes to later: 1.3 MiB for each of a thousand sandboxes of one process. And what is not
// there cannot be read, should anyone ever get at pid 1. So everything anonymous or shared goes; what the code runs on stays: its
// images (text, data, and the bss behind it), the stack and the thread's block it stands on, what the kernel maps. A line of the
// map is no unit: the kernel joins neighbours that look alike, a thread's block and a heap of 64 MiB for instance.
//
// What serve() calls after this must need no other memory. Hence -fno-plt for this room (CMakeLists.txt): a call that is bound when
// it is first made reads the loader's lists, some of which lie in the heap. No allocation, no locale, no thread_local of our own.
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "launch/child.h"
#include "launch/instrumented.h"

namespace belljar::launch {
namespace {

struct Range {
  std::uintptr_t start = 0, end = 0;
  bool holds(const void* address) const noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    return at >= start && at < end;
  }
};

// One line of proc_pid_maps(5), as much of it as is asked here.
struct MapsLine {
  Range range;
  bool writable = false, shared = false, of_file = false;
  char name[8]{};  // the beginning of it
  bool is_named(std::string_view start) const noexcept {
    return std::memcmp(name, start.data(), start.size()) == 0;
  }  // of at most 8
};

// Reads such lines without memory of its own, as long as they may be.
class MapsReader {
 public:
  explicit MapsReader(int fd) noexcept : fd_(fd) {}
  bool next(MapsLine& line) noexcept {
    line = {};
    int field = 0;
    std::size_t in_field = 0;
    for (char letter = 0; next_letter(letter);) {
      if (letter == '\n') return true;
      if (letter == ' ' && (field < kName || in_field == 0)) {  // many before the name, and some in it
        if (field < kName) ++field;
        in_field = 0;
        continue;
      }
      add(line, field, in_field++, letter);
    }
    return false;
  }

 private:
  enum Field : int { kRange, kFlags, kOffset, kDevice, kInode, kName };

  bool next_letter(char& letter) noexcept {
    if (at_ == size_) {
      const ssize_t got = ::read(fd_, buffer_, sizeof buffer_);
      if (got <= 0) return false;
      at_ = 0;
      size_ = static_cast<std::size_t>(got);
    }
    letter = buffer_[at_++];
    return true;
  }

  void add(MapsLine& line, int field, std::size_t place, char letter) noexcept {
    if (field == kRange) {
      if (letter == '-') {
        line.range.start = line.range.end;
        line.range.end = 0;
      } else {
        line.range.end = line.range.end << 4 | static_cast<std::uintptr_t>(letter <= '9' ? letter - '0' : letter - 'a' + 10);
      }
    } else if (field == kFlags) {
      if (letter == 'w') line.writable = true;
      if (letter == 's') line.shared = true;
    } else if (field == kInode) {
      if (letter != '0') line.of_file = true;
    } else if (field == kName && place < sizeof line.name) {
      line.name[place] = letter;
    }
  }

  int fd_;
  std::size_t at_ = 0, size_ = 0;
  char buffer_[2048];
};

constexpr std::size_t kOwnCalls = std::size_t{64} * 1024;  // of stack, what serve() and its calls want
constexpr int kMostRanges = 512;                           // of more, the rest is kept
Range to_unmap[kMostRanges];

// The environment for commands that bring none, in `bytes` of memory of its own.
char* const* copy_environment(char* const* environment, std::size_t& bytes) noexcept {
  std::size_t count = 0;
  bytes = sizeof(char*);
  for (char* const* entry = environment; *entry != nullptr; ++entry, ++count) bytes += sizeof(char*) + std::strlen(*entry) + 1;
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  char** const pointers = static_cast<char**>(memory);
  char* text = reinterpret_cast<char*>(pointers + count + 1);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t size = std::strlen(environment[i]) + 1;
    std::memcpy(text, environment[i], size);
    pointers[i] = text;
    text += size;
  }
  return pointers;  // the last is null: fresh memory
}

// Whole pages around what lies at [start, end).
Range pages_of(std::uintptr_t start, std::uintptr_t end) noexcept {
  const auto page = static_cast<std::uintptr_t>(::getpagesize());
  return {start & ~(page - 1), (end + page - 1) & ~(page - 1)};
}
Range pages_of(const void* start, std::size_t size) noexcept {
  const auto from = reinterpret_cast<std::uintptr_t>(start);
  return pages_of(from, from + size);
}

// The calling thread's block in glibc, and the thread-local variables of libc (errno), which lie below it or above.
Range thread_block() noexcept {
  constexpr std::uintptr_t kAround = 4096, kBlock = 8192;  // struct pthread has 2304 bytes in glibc 2.36
  const auto block = reinterpret_cast<std::uintptr_t>(::pthread_self()), number = reinterpret_cast<std::uintptr_t>(&errno);
  return pages_of(std::min(block, number) - kAround, std::max(block, number) + kBlock);
}

constexpr std::size_t kMostKept = 5;

// What to keep of memory that goes, by address.
class PreservedRanges {
 public:
  void add(const Range& range) noexcept {
    std::size_t at = count_++;
    for (; at > 0 && ranges_[at - 1].start > range.start; --at) ranges_[at] = ranges_[at - 1];
    ranges_[at] = range;
  }
  bool touches(const Range& range) const noexcept {
    return std::any_of(ranges_, ranges_ + count_,
                       [&](const Range& kept) { return kept.start < range.end && range.start < kept.end; });
  }
  // The rest of `range` is added to given_back. How many of that there are then.
  int add_rest(const Range& range, int count) const noexcept {
    std::uintptr_t at = range.start;
    for (std::size_t i = 0; i < count_ && count < kMostRanges; ++i) {
      const Range& kept = ranges_[i];
      if (kept.end <= at || kept.start >= range.end) continue;
      if (kept.start > at) to_unmap[count++] = {at, kept.start};
      at = kept.end;
    }
    if (at < range.end && count < kMostRanges) to_unmap[count++] = {at, range.end};
    return count;
  }

 private:
  Range ranges_[kMostKept];
  std::size_t count_ = 0;
};

// `data`: the writable part of an image, when that was the line before.
bool is_image(const MapsLine& line, const Range& data) noexcept {
  // First: before Linux 6.6 a bss without a gap to the heap is called a heap, and is one mapping with it.
  const bool bss = data.end != 0 && line.range.start == data.end;
  if (bss && !line.shared) return true;
  if (line.shared || line.is_named("[heap]") || line.is_named("[anon:")) return false;  // the last: prctl(PR_SET_VMA_ANON_NAME)
  return line.of_file || line.name[0] == '[';                                           // [vdso] and its like
}

// What calls left on a stack below `limit`, but for `wanted` bytes.
void clear_below(const Range& stack, const void* limit, std::size_t wanted, const PreservedRanges& kept) noexcept {
  const Range below{stack.start, (reinterpret_cast<std::uintptr_t>(limit) - wanted) & ~std::uintptr_t{0xFFF}};
  if (below.end <= below.start || below.end > stack.end || kept.touches(below)) return;
  ::madvise(reinterpret_cast<void*>(below.start), below.end - below.start, MADV_DONTNEED);  // NOLINT(performance-no-int-to-ptr)
}

// A thread with a shadow stack (x86's CET, arm64's GCS) has it in a mapping that looks like any other.
bool has_shadow_stack() noexcept {
#ifdef __aarch64__
  constexpr int kGet = 74;  // PR_GET_SHADOW_STACK_STATUS, Linux 6.13
  unsigned long status = 0;
  if (::prctl(kGet, &status, 0, 0, 0) == 0 && status != 0) return true;
#endif
#ifdef __x86_64__
  constexpr unsigned long kStatus = 0x5005;  // ARCH_SHSTK_STATUS, Linux 6.6
  std::uint64_t features = 0;
  return ::syscall(SYS_arch_prctl, kStatus, &features) == 0 && features != 0;
#else
  return false;
#endif
}

}  // namespace

int open_maps(ChildContext& context) noexcept {
  // A sanitizer's records must stay: every access asks them.
  if (!kInstrumented && !context.one_shot && !has_shadow_stack()) context.maps = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  return 0;  // without /proc it keeps what it has
}

void drop_inherited_memory(ChildContext& context) noexcept {
  if (context.maps < 0) return;
  std::size_t copied = 0;
  char* const* const copy = copy_environment(context.envp, copied);
  int count = 0;
  if (copy != nullptr) {
    const void* const frame = __builtin_frame_address(0);
    const Range block = thread_block();
    PreservedRanges needed;
    needed.add(block);
    needed.add(pages_of(&context, sizeof context));
    needed.add(pages_of(static_cast<const void*>(copy), copied));
    needed.add(pages_of(to_unmap, sizeof to_unmap));
    Range data;
    MapsLine line;
    for (MapsReader lines(context.maps); count < kMostRanges && lines.next(line);) {
      if (line.range.holds(frame)) {
        clear_below(line.range, frame, kOwnCalls, needed);
        // A thread's block is the upper end of its stack; what the kernel joined to that is none of it.
        const bool ends =
            !line.is_named("[stack]") && block.start > reinterpret_cast<std::uintptr_t>(frame) && block.end < line.range.end;
        PreservedRanges also = needed;
        also.add({line.range.start, ends ? block.end : line.range.end});
        count = also.add_rest(line.range, count);
      } else {
        if (line.is_named("[stack]") && line.range.holds(::program_invocation_name))  // what ps shows stays
          clear_below(line.range, ::program_invocation_name, 0, needed);
        if (!is_image(line, data)) count = needed.add_rest(line.range, count);
      }
      data = line.of_file && line.writable && !line.shared ? line.range : Range();
    }
    context.envp = copy;
    context.plan = nullptr;
    context.first = nullptr;
    context.slots = nullptr;
  }
  for (int i = 0; i < count; ++i) {
    void* const start = reinterpret_cast<void*>(to_unmap[i].start);  // NOLINT(performance-no-int-to-ptr)
    ::munmap(start, to_unmap[i].end - to_unmap[i].start);
  }
  ::close(context.maps);
  context.maps = -1;
}

}  // namespace belljar::launch
