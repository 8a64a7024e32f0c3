// Where the build put what the tests run. Names instead of macros: an absolute path on the command line of every test would keep
// what a compiler cache learnt in one clone from being of use in another.
#pragma once

namespace belljar::test {

extern const char kBelljar[];    // the program
extern const char kProbe[];      // what the escape tests try inside
extern const char kSourceDir[];  // the clone, without a slash at its end

}  // namespace belljar::test
