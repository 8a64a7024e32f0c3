// Whether a sanitizer is compiled in: it keeps records of memory and of the stacks of threads, and knows no other stack and no
// process that shares memory.
#pragma once

namespace belljar::launch {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kInstrumented = true;
#elif defined(__has_feature)  // clang
inline constexpr bool kInstrumented = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||
                                      __has_feature(memory_sanitizer) || __has_feature(hwaddress_sanitizer);
#else
inline constexpr bool kInstrumented = false;
#endif

}  // namespace belljar::launch
