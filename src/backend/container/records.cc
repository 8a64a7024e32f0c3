#include "backend/container/records.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/format.h"
#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar::backend::container {
namespace {

constexpr std::size_t kHeader = 9;
constexpr std::size_t kEndedSize = 38;

void add32(std::string& text, std::uint32_t value) {
  for (const int shift : {24, 16, 8, 0}) text += static_cast<char>(value >> shift & 0xFFU);
}

std::uint64_t number64(std::string_view payload, std::size_t at) noexcept {
  return static_cast<std::uint64_t>(number_in(payload, at)) << 32 | number_in(payload, at + 4);
}

}  // namespace

std::uint32_t number_in(std::string_view payload, std::size_t at) noexcept {
  if (payload.size() < at + 4) return 0;
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(payload[at + i]);
  return value;
}

std::string make_record(char type, std::uint32_t id, std::string_view payload) {
  std::string record;
  record.reserve(kHeader + payload.size());
  record += type;
  add32(record, id);
  add32(record, static_cast<std::uint32_t>(payload.size()));
  record += payload;
  return record;
}

std::string make_record(char type, std::uint32_t id, std::uint32_t number) {
  std::string payload;
  add32(payload, number);
  return make_record(type, id, payload);
}

std::string make_hello(std::uint32_t version, std::uint32_t pid) {
  std::string payload;
  add32(payload, version);
  add32(payload, pid);
  return make_record('h', 0, payload);
}

std::string make_request(const std::string& cwd, const std::vector<std::string>& argv,
                         const std::map<std::string, std::string>& variables) {
  std::string request;
  add32(request, static_cast<std::uint32_t>(argv.size()));
  add32(request, static_cast<std::uint32_t>(variables.size()));
  const auto add = [&](std::string_view text) {
    request += text;
    request += '\0';
  };
  add(cwd);
  for (const std::string& word : argv) add(word);
  for (const auto& [name, text] : variables) add(name + "=" + text);
  return request;
}

Result<ExitRecord> parse_exit_record(std::string_view payload) {
  if (payload.size() < kEndedSize)
    return Error(Code::kDataLoss, "cannot read how the command ended").reason("the record is too short");
  ExitRecord ended;
  ended.status = static_cast<int>(number_in(payload));
  ended.user_us = number64(payload, 4);
  ended.system_us = number64(payload, 12);
  ended.peak_bytes = number64(payload, 20);
  ended.out_of_memory = payload[28] != 0;
  ended.out_of_pids = payload[29] != 0;
  ended.wall_us = number64(payload, 30);
  return ended;
}

Result<void> RecordParser::feed(std::string_view bytes, const Sink& sink) {
  rest_ += bytes;
  std::string_view left = rest_;
  while (left.size() >= kHeader) {
    const std::uint32_t size = number_in(left, 5);
    if (size > kLargestRecord) {
      rest_.clear();
      return Error(Code::kDataLoss, "cannot read the container's output")
          .reason(format("a record of {} bytes: its pid 1 is not Belljar's", size));
    }
    if (left.size() < kHeader + size) break;
    sink(left[0], number_in(left, 1), left.substr(kHeader, size));
    left.remove_prefix(kHeader + size);
  }
  rest_.erase(0, rest_.size() - left.size());
  return {};
}

}  // namespace belljar::backend::container
