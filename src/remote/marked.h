// How a command's whole tree is found where nothing but shell text can be run: by a variable that it and all it starts carry.
#pragma once

namespace belljar::remote {

inline constexpr char kMark[] = "BELLJAR_COMMAND";

// `sh -c TEXT sh MARK SIGNAL`, or a file of that text: signals whatever carries a mark that begins with MARK, daemons and double
// forks too, which inherit the variable. KILL until nothing is found: what forks meanwhile, too. Exits with 1 when it never ends.
inline constexpr char kEndMarked[] = R"sh(turn=0
while [ "$turn" -lt 50 ]; do
  found=$(grep -lsF "BELLJAR_COMMAND=$1" /proc/[0-9]*/environ)
  [ -n "$found" ] || exit 0
  for file in $found; do pid=${file#/proc/}; kill "-$2" "${pid%/environ}" 2>/dev/null; done
  [ "$2" = 9 ] || exit 0
  turn=$((turn + 1))
done
exit 1
)sh";

}  // namespace belljar::remote
