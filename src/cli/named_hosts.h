// Which hosts the words of a command name, for what is told of a run without a network: of a name that is looked up there, nobody
// hears. Pure.
#pragma once

#include <string>
#include <vector>

namespace belljar::cli {

struct NamedHost {
  std::string name;
  bool by_tcp = true;  // false: what names it speaks ICMP, which no proxy carries
  bool operator==(const NamedHost&) const = default;
};

// `words`: a program and its arguments, or shell text; a word with blanks in it is read as such text, too. Found are the hosts of
// URLs, and what stands where a program that is known here (ssh, scp, git, ping, getent ...) wants a host. Each once, and none of
// this machine's own names and addresses, of which connections tell. What cannot be told from something else is left out: an
// option's value, a host without a dot where a word of another kind may stand.
std::vector<NamedHost> named_hosts(const std::vector<std::string>& words);

}  // namespace belljar::cli
