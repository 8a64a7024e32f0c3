// A page that asks for a password asks to send it to itself: "sign in at https://shop.example/login with your password" in the
// manual of shop.example. So an address counts as somewhere to send secrets only if it is of somebody else.
//
// Own is what the head of a document calls its home, and what is registered under the same name. A link anywhere else makes nothing
// its own: whoever writes an order into a page can write a link as well. Who writes the whole document also writes its head, and so
// can make any host its own; what the order says besides (a secret, a silence, an override) still counts.
#include "detect/addresses.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string_view>

#include "detect/work.h"

namespace belljar::detect {
namespace {

constexpr std::size_t kHead = 2048;  // bytes
constexpr std::string_view kHomeKeys[] = {"homepage",  "home", "home-page", "url",  "website", "site", "source",       "repository",
                                          "canonical", "link", "from",      "host", "domain",  "docs", "documentation"};
// Where anybody gets a name of his own below it.
constexpr std::string_view kShared[] = {"github.io",   "gitlab.io",     "pages.dev",    "workers.dev",   "vercel.app",
                                        "netlify.app", "herokuapp.com", "blogspot.com", "amazonaws.com", "web.app"};

bool is_host(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_'; }

// "docs.shop.example" is of "shop.example", "docs.shop.co.uk" of "shop.co.uk".
std::string_view registered(std::string_view host) noexcept {
  while (host.ends_with('.')) host.remove_suffix(1);
  std::size_t names = 2;
  if (std::ranges::any_of(kShared, [&](std::string_view shared) { return host.ends_with(shared); })) names = 3;
  const std::size_t last = host.rfind('.'), before = last == std::string_view::npos ? last : host.rfind('.', last - 1);
  if (before != std::string_view::npos && host.size() - last == 3 && last - before <= 4) names = 3;
  std::size_t at = host.size();
  for (; names > 0 && at != std::string_view::npos && at > 0; --names) at = host.rfind('.', at - 1);
  return at == std::string_view::npos || at == 0 ? host : host.substr(at + 1);
}

}  // namespace

// Behind `://` or `@`; empty: none is named there.
std::string_view Addresses::host_from(std::size_t at) const noexcept {
  std::size_t end = at;
  constexpr std::size_t kLongest = 120;
  while (end < text_.size() && end - at < kLongest && is_host(text_[end])) ++end;
  return text_.substr(at, end - at);
}

bool Addresses::has_foreign(std::size_t begin, std::size_t end) const {
  const std::string_view near = text_.substr(begin, end - begin);
  count_steps(3 * near.size());
  if (near.find("webhook") != std::string_view::npos) return true;
  for (std::size_t at = near.find("http"); at != std::string_view::npos; at = near.find("http", at + 1)) {
    const std::size_t scheme = near.find("://", at);
    if (scheme == std::string_view::npos || scheme > at + 5) return true;  // "by http": nobody's in particular
    if (const std::string_view host = host_from(begin + scheme + 3); !is_own(host)) return true;
  }
  for (std::size_t at = near.find('@'); at != std::string_view::npos; at = near.find('@', at + 1)) {
    const bool mail = at > 0 && is_host(near[at - 1]);
    if (const std::string_view host = host_from(begin + at + 1);
        mail && host.find('.') != std::string_view::npos && host.size() > 3 && !is_own(host))
      return true;
  }
  return false;
}

bool Addresses::is_own(std::string_view host) const {
  find_own();
  return std::ranges::find(own_, registered(host)) != own_.end();
}

void Addresses::find_own() const {
  if (found_own_) return;
  found_own_ = true;
  const std::string_view head = text_.substr(0, kHead);
  for (std::size_t at = 0; at < head.size();) {
    const std::size_t end = std::min(head.find('\n', at), head.size());
    const std::string_view line = head.substr(at, end - at);
    const std::size_t first = line.find_first_not_of(" -*#\"'<>|[("), colon = line.find_first_of(":=\"'", first);
    const std::string_view key =
        first == std::string_view::npos || colon == std::string_view::npos ? "" : line.substr(first, colon - first);
    const std::size_t web = line.find("://"), mail = line.find('@');
    if (std::ranges::find(kHomeKeys, key) != std::end(kHomeKeys) || line.find("rel=\"canonical\"") != std::string_view::npos) {
      if (web != std::string_view::npos) own_.push_back(registered(host_from(at + web + 3)));
      else if (mail != std::string_view::npos) own_.push_back(registered(host_from(at + mail + 1)));
    }
    at = end + 1;
  }
}

}  // namespace belljar::detect
