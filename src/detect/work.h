// How much a scan does, in steps that take about as long each: so that a test can say, without a clock, that it grows with the text
// and no faster. Whoever walks over a text, back over it or along a list that grows with it counts the steps.
#pragma once

#include <cstddef>
#include <cstdint>

namespace belljar::detect {

// Of this thread since scan() began. One for all layers and rows, or each of them would have to hand it on.
inline thread_local std::uint64_t steps_of_scan = 0;
inline void count_steps(std::size_t steps) noexcept { steps_of_scan += steps; }

}  // namespace belljar::detect
