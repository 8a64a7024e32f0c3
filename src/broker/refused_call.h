// Calls that the filter refuses by way of a notification (SeccompSpec::tell_refusals): answered with the errno that the filter
// alone would give, and recorded. Nothing of the caller decides here but its registers, which it cannot change while it waits.
#pragma once

#include "broker/context.h"

namespace belljar::broker {

// A call of another ABI (i386, x32): its process is killed, as by a filter that tells nobody. False: it is none.
bool handle_foreign(Context& context, const Call& call);

// False when the filter does not refuse this call: it is somebody else's to answer.
bool handle_refused(Context& context, const Call& call);

// For a call that the filter sent here to be looked at and would refuse by itself: recorded as such; -errno, 0 where it would not.
int refuse_as_filter(Context& context, const Call& call);

// What a violation calls the act: {"system-call", "mount"}, {"socket", "AF_PACKET SOCK_RAW"}. Pure.
struct CallName {
  std::string operation;
  std::string target;
};
CallName name_of(const Call& call);

}  // namespace belljar::broker
