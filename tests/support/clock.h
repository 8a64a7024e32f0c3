// The clock that stamps files, for tests that ask what was changed since.
#pragma once

namespace belljar::test {

// ctime ticks with the kernel's coarse clock: what is written in the same tick as a run begins counts as changed meanwhile. Waits
// until what was written before lies in the past.
void let_the_clock_tick();

}  // namespace belljar::test
