// A small net of what kinds of words stand in a few sentences, whatever the words are: one hidden layer over roles (signs.h), which
// of them are spoken as orders or negated, what the rows of patterns.cc found, and marks. The linear model (model.h) knows the
// words of the texts that it was trained on and adds them up; the net knows no word, and what two roles say together. Its weights
// are data (role_net.inc), made by tools/train-detector; docs/design/guard.md says what it is worth.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "detect/signs.h"

namespace belljar::detect {

// The roles, signs and marks that occur in some sentences.
struct RoleBits {
  Roles roles = 0, orders = 0, negated = 0;
  std::uint64_t signs = 0;  // of sign_bit()
  std::uint32_t marks = 0;  // bits of Mark (model.h)

  void add(const RoleBits& other) noexcept {
    roles |= other.roles, orders |= other.orders, negated |= other.negated, signs |= other.signs, marks |= other.marks;
  }
  bool operator==(const RoleBits&) const = default;
};

// The bit of a sign of patterns.cc; 0 for any other name.
std::uint64_t sign_bit(std::string_view sign) noexcept;

class RoleNet {
 public:
  static constexpr std::size_t kHidden = 32;

 private:
  struct Column {
    float to[kHidden] = {};
  };

 public:
  RoleNet();  // of role_net.inc
  // Not of sentences with fewer than three roles and no sign, which nearly all are: odds() says nothing of those.
  static bool may_say(const RoleBits& bits) noexcept;

  // Sentences that come one after the other: odds() adds what is new to what the hidden units have.
  class Run {
   public:
    explicit Run(const RoleNet& net) : net_(net), hidden_(net.bias_) {}
    void add(const RoleBits& more) noexcept;
    // Log-odds that these sentences are an attack, on the scale of model.h; -1e9 where the net says nothing.
    float odds() noexcept;

   private:
    void sum(const std::vector<Column>& columns, std::uint64_t set) noexcept;
    const RoleNet& net_;
    RoleBits bits_, summed_;
    Column hidden_;
    float odds_ = -1e9F;
  };

 private:
  void read_row(std::string_view kind, std::string_view name, std::string_view numbers);
  std::vector<Column> roles_ = std::vector<Column>(64), orders_ = roles_, negated_ = roles_, signs_ = roles_;
  std::vector<Column> marks_ = std::vector<Column>(16);
  Column bias_, out_;
  float out_bias_ = -9;
};
const RoleNet& role_net();

}  // namespace belljar::detect
