// One function for each intercepted call; a file of its own holds it. Run on a receiver thread; may block; answer themselves.
#pragma once

#include "broker/context.h"
#include "broker/receivers.h"

namespace belljar::broker {

void handle_connect(Context& context, const Call& call, Receivers::Slot& slot);
void handle_bind(Context& context, const Call& call, Receivers::Slot& slot);
void handle_getsockname(Context& context, const Call& call);
void handle_socketpair(Context& context, const Call& call);
void handle_getsockopt(Context& context, const Call& call);
void handle_listen(Context& context, const Call& call);

}  // namespace belljar::broker
