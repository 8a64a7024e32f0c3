// Where Belljar keeps what outlives a run: layers of transactions, refusals for `belljar explain`.
#pragma once

#include <string>

namespace belljar {

// $XDG_STATE_HOME/belljar when that is set and absolute; else /var/lib/belljar for root, whose HOME may be another user's (sudo);
// else ~/.local/state/belljar. Empty when there is no home either. Hidden from every sandbox. Not while another thread sets the
// environment.
std::string default_state_dir();

}  // namespace belljar
