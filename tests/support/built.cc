#include "support/built.h"

namespace belljar::test {

const char kBelljar[] = BELLJAR_PROGRAM;
const char kProbe[] = BELLJAR_PROBE;
const char kSourceDir[] = BELLJAR_SOURCE_DIR;

}  // namespace belljar::test
