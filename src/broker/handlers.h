// One function for each intercepted call; a file of its own holds it. Run on a worker thread; may block; answer themselves.
#pragma once

#include "broker/context.h"
#include "broker/workers.h"

namespace belljar::broker {

void handle_connect(Context& context, const Call& call, Workers::Slot& slot);
void handle_listen(Context& context, const Call& call);

}  // namespace belljar::broker
