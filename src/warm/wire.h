// What a `belljar run` and the spare that serves it say to each other, and what both must find alike.
//
// Messages travel over a SOCK_SEQPACKET of one machine between two processes of one program file: no version, no byte order. All of
// it is inlined always and calls nothing: the client runs before libc does (client.cc), and a copy that another file of the program
// was compiled with is none for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace belljar::warm::wire {

inline constexpr std::uint32_t kMagic = 0x6d726177;
inline constexpr std::size_t kMostBytes = 128U << 10;  // of one request; a longer command line or environment starts cold
inline constexpr int kSlots = 2;                       // spares of one kind

enum class Ask : std::uint32_t { kRun = 1, kTell, kEnd };

// What a process says of itself that a command inherits, besides what the kernel is asked of it (caller.h).
inline constexpr std::size_t kLimits = 16;   // RLIM_NLIMITS
inline constexpr std::size_t kNodes = 1024;  // of memory, get_mempolicy(2)
inline constexpr int kGetMemoryMerge = 68;   // Linux 6.4
struct Inherited {
  std::uint64_t limits[kLimits][2]{};
  std::int32_t nice = 0, policy = 0, priority = 0, io = 0;
  std::uint32_t personality = 0;
  std::uint32_t ignored = 0;  // signals, bit n - 1 for n
  std::int32_t umask = 0, no_huge_pages = 0, no_new_code = 0,
               memory_policy = 0;  // PR_GET_THP_DISABLE, PR_GET_MDWE, get_mempolicy(2)
  std::int32_t merged_memory = 0, memory_errors = 0, secure_bits = 0,
               time_stamps = 0;   // PR_GET_MEMORY_MERGE, PR_MCE_KILL_GET, PR_GET_SECUREBITS, PR_GET_TSC
  std::uint64_t scheduling[7]{};  // sched_getattr(2): slice and clamps among it
  std::uint64_t timer_slack = 0;  // PR_GET_TIMERSLACK
  std::uint64_t program_device = 0, program_inode = 0;
  std::uint64_t memory_nodes[kNodes / 64]{};
  bool operator==(const Inherited&) const = default;
};
static_assert(std::has_unique_object_representations_v<Inherited>);  // it is hashed

// Who asks must show that the kernel lets them look into the spare, as into any process of theirs: what they read there is random
// and new for each spare, the target of its descriptor kProofFd. A process that is confined by Landlock, in a user namespace of its
// own or by a label cannot, ptrace(2), whatever else it looks like.
inline constexpr int kProofFd = 3;
inline constexpr std::size_t kProofBytes = 64;

// Followed by argv, the environment and the working directory, NUL-terminated each.
struct Request {
  std::uint32_t magic = kMagic;
  Ask ask = Ask::kRun;
  std::uint32_t argc = 0, argv_bytes = 0, environment_bytes = 0, cwd_bytes = 0;
  Inherited inherited;
  char proof[kProofBytes]{};
};

enum class Say : std::uint32_t {
  kTaken = 1,  // nothing had been done before it; answered by kGo, from which on the run is the spare's
  kRefused,    // this spare is not what a start would make now
  kStop,       // stop yourself: the command has been
  kEnded,      // with the exit code
  kSignalled,  // die by that signal, as a cold run would have
};
struct Answer {
  Say say = Say::kRefused;
  std::int32_t value = 0;
};
// From a client whose run was taken: first kGo, with the three streams, then the signals it got.
inline constexpr std::int32_t kGo = 0;
struct Signal {
  std::int32_t number = 0;
};

// --- what is the command's among the words of `belljar run`, and what is the kind of run

[[gnu::always_inline]] inline bool equal(const char* a, const char* b) noexcept {
  while (*a != '\0' && *a == *b) ++a, ++b;
  return *a == *b;
}
[[gnu::always_inline]] inline bool begins(const char* text, const char* with) noexcept {
  while (*with != '\0' && *text == *with) ++text, ++with;
  return *with == '\0';
}
[[gnu::always_inline]] inline std::size_t length(const char* text) noexcept {
  std::size_t size = 0;
  while (text[size] != '\0') ++size;
  return size;
}

// `argv` of `belljar run`: its options end before `options`, the text of -c is at `text` (0: none), the program's words begin at
// `program`. `right`: a spare may serve it.
struct Words {
  int options = 0, text = 0, program = 0;
  bool right = false;
};
[[gnu::always_inline]] inline Words words_of(int argc, const char* const* argv) noexcept {
  Words words;
  if (argc < 3 || !equal(argv[1], "run")) return words;
  bool twice = false;
  int at = 2;
  for (; at < argc && !equal(argv[at], "--"); ++at) {
    if (!equal(argv[at], "-c")) continue;
    twice |= words.text != 0;
    if (++at < argc) words.text = at;
  }
  words.options = at < argc ? at : argc;
  words.program = words.options + (at < argc ? 1 : 0);
  const bool has_program = words.program < argc && argv[words.program][0] != '\0';
  const bool has_text = words.text != 0 && argv[words.text][0] != '\0' && argv[words.text][0] != '-';
  words.right = !twice && (words.text != 0 ? has_text : has_program);
  return words;
}

// Variables that say where a shell is, and decide nothing of a sandbox: each run has its own.
[[gnu::always_inline]] inline bool is_of_each_run(const char* entry) noexcept {
  return begins(entry, "_=") || begins(entry, "SHLVL=") || begins(entry, "OLDPWD=");
}

// Gives `take` each byte string in which two runs must be equal to share a spare, besides wire::Inherited.
template <class Take>
[[gnu::always_inline]] inline void each_of_kind(const Words& words, const char* const* argv, const char* const* environment,
                                                const char* cwd, const Take& take) noexcept {
  for (int i = 1; i < words.options; ++i) take(i == words.text ? "" : argv[i]);
  take("--");
  for (const char* const* entry = environment; *entry != nullptr; ++entry) {
    if (!is_of_each_run(*entry)) take(*entry);
  }
  take(cwd);
}

// FNV-1a, for a name of a file: the spare compares the strings themselves.
struct Hash {
  std::uint64_t value = 0xcbf29ce484222325U;
  [[gnu::always_inline]] void add(unsigned char byte) noexcept { value = (value ^ byte) * 0x100000001b3U; }
};
struct HashOfTexts {
  Hash& hash;
  [[gnu::always_inline]] void operator()(const char* text) const noexcept {
    do hash.add(static_cast<unsigned char>(*text));
    while (*text++ != '\0');
  }
};
[[gnu::always_inline]] inline std::uint64_t hash_of_kind(const Words& words, const char* const* argv,
                                                         const char* const* environment, const char* cwd,
                                                         const Inherited& inherited) noexcept {
  Hash hash;
  each_of_kind(words, argv, environment, cwd, HashOfTexts{hash});
  const auto* const bytes = reinterpret_cast<const unsigned char*>(&inherited);
  for (std::size_t i = 0; i < sizeof inherited; ++i) hash.add(bytes[i]);
  return hash.value;
}

// --- where spares listen: state_dir()/warm/KIND.SLOT, as belljar/state_dir.h has it

inline constexpr std::size_t kPathBytes = 108;  // of sun_path, unix(7)

// Behind the first `size` bytes; how many there are then.
[[gnu::always_inline]] inline std::size_t put_text(char (&path)[kPathBytes], std::size_t size, const char* text) noexcept {
  for (; *text != '\0' && size < kPathBytes; ++text) path[size++] = *text;
  return size;
}

// Writes the directory, without a NUL; 0: there is none, or it is too long for a socket in it.
[[gnu::always_inline]] inline std::size_t put_directory(const char* const* environment, bool is_root,
                                                        char (&path)[kPathBytes]) noexcept {
  const char *state = nullptr, *home = nullptr;
  for (const char* const* entry = environment; *entry != nullptr; ++entry) {
    if (state == nullptr && begins(*entry, "XDG_STATE_HOME=")) state = *entry + 15;
    if (home == nullptr && begins(*entry, "HOME=")) home = *entry + 5;
  }
  std::size_t size = 0;
  if (state != nullptr && *state == '/') {
    size = put_text(path, size, state);
  } else if (is_root) {
    size = put_text(path, size, "/var/lib");
  } else if (home != nullptr && *home == '/') {
    size = put_text(path, size, home);
    size = put_text(path, size, "/.local/state");
  } else {
    return 0;
  }
  size = put_text(path, size, "/belljar/warm");
  constexpr std::size_t kName = 20;  // "/", 16 digits, ".", a digit, NUL
  return size + kName <= kPathBytes ? size : 0;
}

// Writes "/KIND.SLOT" and a NUL behind the directory.
[[gnu::always_inline]] inline void put_name(char* at, std::uint64_t kind, int slot) noexcept {
  *at++ = '/';
  for (int shift = 60; shift >= 0; shift -= 4) {
    const unsigned digit = static_cast<unsigned>(kind >> shift) & 15U;
    *at++ = static_cast<char>(digit < 10 ? '0' + digit : 'a' + digit - 10);
  }
  *at++ = '.';
  *at++ = static_cast<char>('0' + slot);
  *at = '\0';
}

}  // namespace belljar::warm::wire
