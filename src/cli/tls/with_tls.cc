#include "cli/tls_parts.h"
#include "egress/tls/interceptor.h"

namespace belljar::cli {

egress::MakeInterceptor interceptor_of_this_program() noexcept { return egress::tls::make_interceptor; }

}  // namespace belljar::cli
