// What a change brings into a file or a setting that was not there, and whether it lowers a protection.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "guard/call.h"

namespace belljar::guard {

// Text that a change adds and takes away, as far as both stand in the call.
struct Change {
  std::string path;  // empty: a setting of a tool
  std::string added, removed;
};

// Strings of `added` that somebody chose and that `removed` does not have: hosts, addresses, accounts, keys, names of packages in
// the place of a dependency, and where no prose is written, whole values of several words.
std::vector<Atom> brought_by(const Change& change);

// It takes a host, an address, an account or a key away and puts another there.
bool replaces_like(const Change& change);

// A text for people by its name: `notes.md`, `about.html`.
bool is_prose(std::string_view path);

// A protection is switched off, taken out or made weaker: certificates that are not checked, sign-in that is not required.
bool lowers_protection(const Change& change);

// What a `sed` expression, a patch or words of a command add and take away.
void add_expression(std::string_view expression, Change& change);
void add_diff(std::string_view patch, std::string_view path, std::vector<Change>& changes);

}  // namespace belljar::guard
