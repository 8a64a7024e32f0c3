#include "broker/peers.h"

#include <algorithm>
#include <cstdint>

#include "broker/caller.h"
#include "kernel/unix_diag.h"

namespace belljar::broker {

Peers::Process Peers::Process::of(const Caller& caller) {
  const Caller::Ids ids = caller.ids_inside();
  return {.ours = ids.process, .inside = ids.tgid, .identity = Caller(ids.process).identity()};
}

void Peers::note(ino_t client, const Process& process) {
  const std::scoped_lock lock(mutex_);
  if (processes_.insert_or_assign(client, process).second) order_.push_back(client);
  if (order_.size() <= kMost) return;
  processes_.erase(order_.front());
  order_.pop_front();
}

void Peers::forget(ino_t client) {
  const std::scoped_lock lock(mutex_);
  if (processes_.erase(client) == 0) return;
  order_.erase(std::find(order_.rbegin(), order_.rend(), client).base() - 1);
}

std::optional<Peers::Process> Peers::find(int accepted) const {
  kernel::UnixSocketId id;
  std::uint32_t peer = 0;
  if (kernel::identify_unix_socket(accepted, id) != 0) return std::nullopt;
  const std::scoped_lock lock(mutex_);
  if (kernel::find_unix_peer(diag_.get(), id, peer) != 0) return std::nullopt;
  const auto found = processes_.find(peer);
  return found == processes_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace belljar::broker
