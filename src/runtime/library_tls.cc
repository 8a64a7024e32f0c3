// A file of its own: only a program that asks for it holds libssl.
#include "egress/tls/interceptor.h"
#include "runtime/embed.h"

namespace belljar::runtime {

egress::MakeInterceptor library_interceptor() noexcept { return egress::tls::make_interceptor; }

}  // namespace belljar::runtime
