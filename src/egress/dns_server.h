// The resolver inside: which names have an address there, and which. docs/design/egress.md.
//
// An allowed name that exists gets the address that stands for it (fake_addresses.h); every other name does not exist, and the
// attempt is recorded. A name that is refused is never looked up: the question itself carries data (CVE-2025-55284). Records other
// than A are empty: no service, no text, no key of an encrypted hello comes in.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>

#include "egress/context.h"
#include "egress/dns.h"

namespace belljar::egress {

// The answer by the rules alone; nullopt: the addresses of question.name must be looked up first. `asker`
// finds the process that asked, for the record of a refusal.
std::optional<DnsAnswer> judge_question(Context& context, const DnsQuestion& question, const std::function<Culprit()>& asker);
DnsAnswer answer_question(Context& context, const DnsQuestion& question, const Resolved& resolved,
                          const std::function<Culprit()>& asker);

// The UDP socket. Owned by the proxy's thread.
class DnsServer {
 public:
  // Tells answers of lookups from those of connections.
  static constexpr std::uint64_t kMark = std::uint64_t{1} << 62;

  DnsServer(Context& context, UniqueFd socket) : context_(context), socket_(std::move(socket)) {}
  int fd() const noexcept { return socket_.get(); }
  // True: there may be more, others come first.
  bool serve();
  void on_resolved(std::uint64_t id, const Resolved& resolved);

 private:
  struct Asker {
    sockaddr_storage peer{};
    socklen_t peer_size = 0;
    std::uint32_t asked_at = 0;  // the address it was sent to, network order
  };
  void handle_query(std::string_view message, const Asker& asker);
  std::function<Culprit()> finder(const Asker& asker) const;  // of who asked
  void reply(const DnsQuestion& question, const DnsAnswer& answer, const Asker& asker) const;

  Context& context_;
  UniqueFd socket_;
  struct Waiting {
    DnsQuestion question;
    Asker asker;
  };
  std::unordered_map<std::uint64_t, Waiting> waiting_;
  std::uint64_t next_ = kMark;
};

}  // namespace belljar::egress
