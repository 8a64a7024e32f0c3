// In `belljar` only; belljar-tls has tls/with_tls.cc instead.
#include "cli/tls_parts.h"

namespace belljar::cli {

egress::MakeInterceptor interceptor_of_this_program() noexcept { return nullptr; }

}  // namespace belljar::cli
