// Where a text could send something: hosts of web and mail addresses, and which of them are the document's own.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace belljar::detect {

// Of normalised text (normal.h), which outlives it.
class Addresses {
 public:
  explicit Addresses(std::string_view text) : text_(text) {}

  // Between `begin` and `end` stands an address that is not the document's own, or the word for one that no host is named for
  // ("webhook"). The document's own are those that its head names as its home: behind `homepage:`, `url:`, `from:` and the like,
  // in the first lines.
  bool has_foreign(std::size_t begin, std::size_t end) const;

 private:
  std::string_view host_from(std::size_t at) const noexcept;
  void find_own() const;
  bool is_own(std::string_view host) const;

  std::string_view text_;
  mutable bool found_own_ = false;
  mutable std::vector<std::string_view> own_;  // what a name is registered as
};

}  // namespace belljar::detect
