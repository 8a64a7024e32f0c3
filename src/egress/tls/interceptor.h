// The one implementation of egress::Interceptor, by OpenSSL. What links this holds libssl.
#pragma once

#include "egress/intercept.h"

namespace belljar::egress::tls {

// As MakeInterceptor.
Result<std::unique_ptr<Interceptor>> make_interceptor(const InterceptorOptions& options);

}  // namespace belljar::egress::tls
