// Rules for the addresses and keys of every cloud. Values; no I/O.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/result.h"

namespace belljar::remote {

// `given`, or the first of these variables that is not empty.
std::string first_of(const std::string& given, const std::map<std::string, std::string>& environment,
                     std::initializer_list<const char*> names);

// ASCII letters, digits and what is in `more`, and nothing else; empty, too.
bool consists_of(std::string_view text, std::string_view more) noexcept;
// Whether a header takes the text as it is.
bool is_header(std::string_view text) noexcept;

// Whether a key may be sent there: https, or an address of this machine.
bool is_safe_url(const std::string& url);
enum class Query { kAllowed, kRefused };  // whether a URL may have a `?` or `#`
// Errors: kInvalidArgument, it is no URL, or no safe one; without what may be a password.
Result<void> check_url(std::string_view what, const std::string& url, Query query = Query::kAllowed);

// `text` of a service without what is secret, escaped, and not endless.
std::string shown(std::string_view text, const std::vector<std::string>& secrets);

}  // namespace belljar::remote
