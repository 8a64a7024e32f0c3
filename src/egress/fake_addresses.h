// Names and the addresses that stand for them inside a sandbox. A program that knows nothing of a proxy connects to such an
// address, and the proxy knows by it which name was meant. An address is never given to a second name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "policy/defaults.h"

namespace belljar::egress {

// Every host address of the range: some 6 MB with names of a usual length, and 22 MB with the longest there are.
inline constexpr std::uint32_t kMostNames = 0xFFFE;

// One thread.
class FakeAddresses {
 public:
  // `range`: the lowest address of a /16, as a number.
  explicit FakeAddresses(std::uint32_t range = policy::kFakeAddresses) noexcept : range_(range) {}
  // The address of `name` (canonical), made when it has none. nullopt: every address is taken.
  std::optional<std::uint32_t> address_of(const std::string& name);
  const std::string* find_name(std::uint32_t address) const noexcept;
  bool is_fake(std::uint32_t address) const noexcept;

 private:
  std::uint32_t range_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::vector<const std::string*> names_;  // keys of numbers_, by number
};

}  // namespace belljar::egress
