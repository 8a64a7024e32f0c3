#include "backend/native/owner.h"

#include <sys/types.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "backend/backend.h"
#include "backend/native/host.h"
#include "base/format.h"

namespace belljar::backend {
namespace {

struct Account {
  gid_t gid = 0;
  std::string home;
};

// "name:x:uid:gid:gecos:home:shell", passwd(5). getpwuid(3) would load NSS modules into root's process, and a static program has
// none.
std::optional<Account> parse_account(std::string_view line, uid_t wanted) {
  std::string_view fields[6];
  for (std::string_view& field : fields) {
    const std::size_t colon = line.find(':');
    field = line.substr(0, colon);
    if (colon == std::string_view::npos) return std::nullopt;
    line.remove_prefix(colon + 1);
  }
  const auto number = [](std::string_view text) {
    unsigned value = 0;
    const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
    return end.ec == std::errc() && end.ptr == text.data() + text.size() ? std::optional(value) : std::nullopt;
  };
  const auto uid = number(fields[2]);
  const auto gid = number(fields[3]);
  if (uid != wanted || !gid) return std::nullopt;
  return Account{*gid, std::string(fields[5])};
}

std::optional<Account> find_account(const Host& host, uid_t uid) {
  const auto text = host.read_small("/etc/passwd");
  for (std::size_t at = 0; text && at < text->size();) {
    const std::size_t end = std::min(text->find('\n', at), text->size());
    if (auto account = parse_account(std::string_view(*text).substr(at, end - at), uid)) return account;
    at = end + 1;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Workplace> place_of_owner(const Host& host, const Workplace& place) {
  const uid_t uid = host.facts(place.workspace).uid;
  if (uid == 0) return std::nullopt;
  const Account account = find_account(host, uid).value_or(Account{});
  Workplace theirs = place;
  // Never the workspace's group: it may be one that the owner is not in (shadow, docker). Never group 0 either.
  theirs.owner = Owner{uid, account.gid != 0 ? account.gid : uid, place.home};
  const auto home = account.home.empty() ? std::nullopt : host.canonical(account.home);
  const bool usable = home && *home != "/" && host.facts(*home).kind == PathKind::kDirectory && host.facts(*home).uid == uid;
  theirs.home = usable ? *home : "";
  theirs.runtime_dir = format("/run/user/{}", uid);
  if (usable) {
    for (std::string& variable : theirs.env) {
      if (variable == "HOME=" + place.home) variable = "HOME=" + *home;
    }
  }
  return theirs;
}

}  // namespace belljar::backend
