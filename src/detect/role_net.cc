// A column of weights for each input, since nearly all inputs of a sentence are nothing: what is there is added up, and no more.
#include "detect/role_net.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <vector>

#include "detect/signs.h"
#include "detect/work.h"

namespace belljar::detect {
namespace {

// A row each: kind, name, a weight for each hidden unit.
constexpr char kNetRows[] =
#include "detect/role_net.inc"
    ;
constexpr std::string_view kRows(kNetRows, sizeof kNetRows - 1);

unsigned number_of(std::string_view text) noexcept {
  unsigned number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// The names of signs, each once, in their order.
const std::vector<std::string_view>& sign_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> made;
    for (const Pattern& pattern : patterns()) made.push_back(pattern.sign);
    made.emplace_back("addresses-assistant");
    std::ranges::sort(made);
    made.erase(std::unique(made.begin(), made.end()), made.end());
    return made;
  }();
  return names;
}

}  // namespace

std::uint64_t sign_bit(std::string_view sign) noexcept {
  const std::vector<std::string_view>& names = sign_names();
  const auto found = std::ranges::lower_bound(names, sign);
  if (found == names.end() || *found != sign || found - names.begin() >= 64) return 0;
  return std::uint64_t{1} << (found - names.begin());
}

RoleNet::RoleNet() {
  for (std::string_view rows = kRows; !rows.empty();) {
    std::string_view row = cut(rows, '\n');
    const std::string_view kind = cut(row, ' '), name = cut(row, ' ');
    read_row(kind, name, row);
  }
}

void RoleNet::read_row(std::string_view kind, std::string_view name, std::string_view numbers) {
  Column* column = nullptr;
  const unsigned bit = role_named(name);
  const bool role = kind == "role" || kind == "order" || kind == "not";
  if (role && bit >= 64) return;  // a name of before
  if (kind == "bias") column = &bias_;
  else if (kind == "out") column = &out_;
  else if (kind == "role") column = &roles_[bit];
  else if (kind == "order") column = &orders_[bit];
  else if (kind == "not") column = &negated_[bit];
  else if (kind == "mark") column = &marks_[number_of(name) % 16];
  else if (const std::uint64_t sign = kind == "sign" ? sign_bit(name) : 0; sign != 0)
    column = &signs_[static_cast<std::size_t>(std::countr_zero(sign))];
  if (column == nullptr) return;
  if (kind == "out") std::from_chars(name.data(), name.data() + name.size(), out_bias_);
  for (float& weight : column->to) {
    const std::string_view number = cut(numbers, ' ');
    std::from_chars(number.data(), number.data() + number.size(), weight);
  }
}

bool RoleNet::may_say(const RoleBits& bits) noexcept {
  constexpr int kFewest = 3;
  return bits.signs != 0 || std::popcount(bits.roles) >= kFewest;
}

void RoleNet::Run::add(const RoleBits& more) noexcept { bits_.add(more); }

void RoleNet::Run::sum(const std::vector<Column>& columns, std::uint64_t set) noexcept {
  for (; set != 0; set &= set - 1) {
    const Column& column = columns[static_cast<std::size_t>(std::countr_zero(set))];
    for (std::size_t i = 0; i < kHidden; ++i) hidden_.to[i] += column.to[i];
  }
}

float RoleNet::Run::odds() noexcept {
  if (bits_ == summed_ || !may_say(bits_)) return odds_;
  count_steps(8);
  sum(net_.roles_, bits_.roles & ~summed_.roles), sum(net_.orders_, bits_.orders & ~summed_.orders);
  sum(net_.negated_, bits_.negated & ~summed_.negated), sum(net_.signs_, bits_.signs & ~summed_.signs);
  sum(net_.marks_, bits_.marks & ~summed_.marks & 0xFFFFU);
  summed_ = bits_;
  constexpr std::size_t kLanes = 8;  // sums beside each other, which a processor adds at once
  float sums[kLanes] = {};
  for (std::size_t i = 0; i < kHidden; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) sums[lane] += std::max(hidden_.to[i + lane], 0.0F) * net_.out_.to[i + lane];
  }
  odds_ = net_.out_bias_;
  for (const float sum : sums) odds_ += sum;
  return odds_;
}

const RoleNet& role_net() {
  static const RoleNet made;
  return made;
}

}  // namespace belljar::detect
