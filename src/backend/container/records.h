// What is said with belljar-inside (src/launch/inside), the container's pid 1, over its stdin and stdout: records of a type, the
// number of a command, a length (both with the highest byte first) and a payload.
//
// To it: R part of a request, G go {flags, rows, columns}, D stdin, C end of stdin, S signal, E end {grace in ms}, W room for so
// many more bytes of output, T rows << 16 | columns, H nobody waits any more, P are you there, F the system call filter of commands
// from now on, M what is mounted. From it: h {version, its own pid}, s {pid}, f could not start {step, errno} or, of a filter,
// {errno, 0: it has it}, o stdout, e stderr, w so many bytes of stdin were taken, b nobody reads stdin, x {status, user µs, system
// µs, peak bytes, out of memory, out of pids, wall µs}, p here, m {the kernel's boot id, a line end, pid 1's
// status, an empty line, mountinfo}.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/result.h"

namespace belljar::backend::container {

inline constexpr std::uint32_t kProtocol = 6;
inline constexpr std::uint32_t kLargestRecord = 1U << 20;
inline constexpr std::uint64_t kOutputWindow = 1U << 20;  // output that may be under way for one command
inline constexpr std::size_t kInputWindow = 256U << 10;   // as much of its stdin

std::string make_record(char type, std::uint32_t id, std::string_view payload);
std::string make_record(char type, std::uint32_t id, std::uint32_t number);
std::string make_hello(std::uint32_t version, std::uint32_t pid);
// The payloads of R and, cut so that each fits a record, its parts.
std::string make_request(const std::string& cwd, const std::vector<std::string>& argv,
                         const std::map<std::string, std::string>& variables);

struct ExitRecord {
  int status = 0;  // of wait(2)
  std::uint64_t user_us = 0, system_us = 0, peak_bytes = 0, wall_us = 0;
  bool out_of_memory = false, out_of_pids = false;
};
// Errors: kDataLoss, too short.
Result<ExitRecord> parse_exit_record(std::string_view payload);
std::uint32_t number_in(std::string_view payload, std::size_t at = 0) noexcept;  // 0 when it is too short

class RecordParser {
 public:
  using Sink = std::function<void(char type, std::uint32_t id, std::string_view payload)>;
  // Errors: kDataLoss, a record that is too large: this is not our program's output.
  Result<void> feed(std::string_view bytes, const Sink& sink);

 private:
  std::string rest_;
};

}  // namespace belljar::backend::container
